"""The scaling study: the same training with several strategies and numbers of workers, in words.

`plan` says what is to be run, `study` runs it, `summary` makes numbers of it, `causes` and
`findings` say what they mean; `terminal`, `page` and `record` show it.
"""
