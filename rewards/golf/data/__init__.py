"""The bytes that Golf trains and scores on: a generator with one language per task, or files of the user's own.

Nothing here is for candidates: a sandbox that runs one holds neither this package nor its secret.
"""
