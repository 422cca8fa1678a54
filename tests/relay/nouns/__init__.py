"""What the tests of the whole route table need to know of each noun: one module each.

`MUTATIONS`: for each route that changes something, a request that succeeds, made anew for each call.
`QUESTIONS`: for each route that reads below a repository, what the crawl for hidden paths asks of it.
`QUIET`: routes that succeed without an event, and why. Each is optional.
"""
