"""What Queue and PodGroup share, and the rules of the T9k scheduler that stand in them.

markers      names, labels and kinds; which group and queue a pod belongs to
durations    `1h20m15s`
queuerules   what a Queue says
queuepolicy  queues and groups as a scheduler asks about them; the embedded one is given this at start
"""
