// `postern serve`: the relay as a service.

import ArgumentParser
import Foundation
import Logging
import PosternServer

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run the relay.",
        discussion: """
            Listens on milter.socket until SIGTERM or SIGINT, and then finishes the messages under way. SIGHUP reads the \
            configuration again; the socket and the database stay as they are until a restart. Another key file (postern key-file rotate) \
            takes effect within a second. Logs go to standard error and hold no inbox address.
            """)

    @OptionGroup var options: InstallationOptions

    func run() async throws {
        let environment = ProcessInfo.processInfo.environment
        let (flag, set) = (options.config, options.set)
        let installation = try Installation.open(flag: flag, environment: environment, set: set, now: PosternClock.now())
        let logger = LogOutput.logger(installation.configuration.log)
        FileDescriptors.raise()
        try await RelayService.run(
            installation: installation,
            reread: { try installation.reread(flag: flag, environment: environment, set: set) }, logger: logger
        ) { socket in
            logger.notice("serving", metadata: ["socket": "\(socket)", "pid": "\(getpid())"])
        }
        try installation.close()
    }
}
