// `make demo-sign-in`: an app whose users sign in with Postern. With AUTO=1 Chromium acts as the
// user, and the exit status is 0 only if every step succeeded. Without it a person does, and the
// program runs until it is interrupted.

import DemoSupport
import Foundation
import PostfixHarness

let isPlayed = ProcessInfo.processInfo.environment["AUTO"].map { !$0.isEmpty && $0 != "0" } ?? false
do {
    let stage = try Stage()
    if isPlayed {
        let story = SignInStory(stage)
        defer { stage.end() }
        do { try story.tell() } catch {
            // Otherwise the app's output would not be visible.
            Terminal.line(stage.app.output)
            throw error
        }
        stage.end()
        exit(story.failures == 0 ? 0 : 1)
    }
    stage.invite()
    // Ctrl-C ends all processes that were started.
    signal(SIGINT, SIG_IGN)
    signal(SIGTERM, SIG_IGN)
    let ends = [SIGINT, SIGTERM].map { number in
        let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
        source.setEventHandler {
            stage.end()
            exit(0)
        }
        source.resume()
        return source
    }
    withExtendedLifetime(ends) { stage.readMailAloud() }
} catch {
    Terminal.line(Terminal.styled("The demonstration stopped: \(error)", .bad))
    exit(1)
}
