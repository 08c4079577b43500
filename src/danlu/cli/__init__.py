"""The command line, one file per command, and the composition root of both modes.

Only here may `embedded` and `kinds` meet. What a command decides belongs elsewhere: these files read words, call and
print.
"""
