// `postern serve`: the relay as a service.

import ArgumentParser
import Foundation
import Logging
import Milter
import Monitoring
import PosternConfiguration
import Service

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run the relay.",
        discussion: """
            Listens on milter.socket and http.listen until SIGTERM or SIGINT, and then finishes the messages and requests in progress.

            SIGHUP reads the configuration, the HTTP certificate and the policies again. From the next message on it applies \
            the keys of which postern config keys says "a reload puts it in force"; all others need a restart, and the log names \
            those that changed. An invalid configuration changes nothing. A changed key file (postern keys file rotate) takes \
            effect within a second.

            If systemd started it (Type=notify), it notifies systemd when it accepts mail, and regularly that it still runs.

            Logs go to standard error and contain no inbox address. For the journal they have priorities and no time, which the journal adds.
            """)

    @OptionGroup var options: InstallationOptions

    func run() async throws {
        // The log then says why the service did not start.
        do { try await serve() } catch { Failure.exit(error, log: logFormat) }
    }

    /// As configured. If the configuration cannot be read, from the flag or the variable.
    private var logFormat: Configuration.LogSettings.Format {
        if let (configuration, _) = try? options.configuration() { return configuration.log.format }
        let flag = options.set.last { $0.hasPrefix("log.format=") }?.dropFirst("log.format=".count)
        return flag.map { $0 == "json" }
            ?? (ProcessInfo.processInfo.environment["POSTERN_LOG_FORMAT"] == "json") ? .json : .text
    }

    private func serve() async throws {
        // Must be called before any thread starts.
        MilterServer.returnMemory()
        let environment = ProcessInfo.processInfo.environment
        let (flag, set) = (options.config, options.set)
        let installation = try Installation.open(
            flag: flag, environment: environment, set: set, now: PosternClock.now())
        try installation.store.database.requireEngine()
        try installation.requireRelayDomains()
        let logger = LogOutput.logger(installation.configuration.log)
        FileDescriptors.raise()
        let manager = ServiceManager(environment: environment)
        try await RelayService.run(
            installation: installation,
            reread: {
                try installation.reread(
                    flag: flag, environment: environment, set: set, now: PosternClock.now())
            },
            logger: logger, manager: manager
        ) { socket in
            manager?.isReady()
            logger.notice("serving", metadata: ["socket": "\(socket)", "pid": "\(getpid())"])
        }
        try installation.close()
    }
}
