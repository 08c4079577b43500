"""What several controllers use: pods of an owner, revisions, the graph of owners."""
