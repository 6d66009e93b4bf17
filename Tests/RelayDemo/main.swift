// `make demo`: the relay through a real Postfix, told as a story. Ends with 0 only if every step came out right.

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
