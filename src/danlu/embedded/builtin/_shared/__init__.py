"""What kinds of several groups share: pod specs, columns, resource names, hooks on the way in."""
