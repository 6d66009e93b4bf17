// `postern serve`: the relay as a service.

import ArgumentParser
import Foundation
import Logging
import Milter
import PosternServer

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run the relay.",
        discussion: """
            Listens on milter.socket and http.listen until SIGTERM or SIGINT, and then finishes the messages and requests under way.

            SIGHUP reads the configuration, the HTTP certificate and the policies again. In force from the next message on are \
            relay_domains, authserv_id, trusted_authserv_ids, operator_address, local_recipients, return_path_days, \
            forward_links, reply_unrewritable, reply_encrypted, limits (but reply_memory), suspension, dns, providers, issuers and \
            log.level; all else waits for a restart, and the log names what does. A configuration in error changes nothing. Another key file \
            (postern key-file rotate) takes effect within a second.

            Logs go to standard error and hold no inbox address.
            """)

    @OptionGroup var options: InstallationOptions

    func run() async throws {
        // Before there are threads.
        MilterServer.returnMemory()
        let environment = ProcessInfo.processInfo.environment
        let (flag, set) = (options.config, options.set)
        let installation = try Installation.open(flag: flag, environment: environment, set: set, now: PosternClock.now())
        let logger = LogOutput.logger(installation.configuration.log)
        FileDescriptors.raise()
        try await RelayService.run(
            installation: installation,
            reread: { try installation.reread(flag: flag, environment: environment, set: set, now: PosternClock.now()) }, logger: logger
        ) { socket in
            logger.notice("serving", metadata: ["socket": "\(socket)", "pid": "\(getpid())"])
        }
        try installation.close()
    }
}
