"""What a user gets to see of a plan: the summary of its numbers, the table, and the folder of files."""
