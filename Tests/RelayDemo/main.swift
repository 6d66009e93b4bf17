// `make demo`: the relay through a real Postfix, step by step. The exit status is 0 only if every
// step succeeded.

import DemoSupport
import Foundation

do {
    let story = try Story()
    defer { story.end() }
    try story.tell()
    let failures = story.failures
    story.end()
    exit(failures == 0 ? 0 : 1)
} catch {
    Terminal.line(Terminal.styled("The demonstration stopped: \(error)", .bad))
    exit(1)
}
