"""A stateful fuzzer of the API: knows kinds, tokens and paths, and what each person may see and change.

An episode is a list of steps made from a seed alone (`generate`), so that the same seed is the same attack. A step
names what it needs of earlier answers (a continue token, a revision) by reference, so that it still means something
when other steps are left out. `execute` plays steps on a live `danlu up` (`process`), and judges every answer by a
model of rights of its own (`people`, `oracle`) and by the server's health. `campaign` plays episodes, reduces what
failed to the steps that matter and writes them to a file which `scripts/fuzz --replay` plays again.
"""
