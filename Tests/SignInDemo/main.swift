// `make demo-sign-in`: an app whose users sign in with Postern. With AUTO=1 Chromium plays the user, and the program ends with 0
// only if every step came out right; without, a person does, and it runs until it is interrupted.

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
            // What the app has to say is not seen otherwise.
            Terminal.line(stage.app.output)
            throw error
        }
        stage.end()
        exit(story.failures == 0 ? 0 : 1)
    }
    stage.invite()
    // Ctrl-C ends everything that was started.
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
