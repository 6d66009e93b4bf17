// postern init: a new data folder.

import ArgumentParser
import PosternServer

struct InitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Make a data folder with configuration, keys and an empty database.",
        discussion: """
            The folder (mode 0700) then holds postern.yaml with every key explained, postern.keys (mode 0600) and postern.db. \
            Nothing is overwritten. Keep a copy of postern.keys apart from copies of the database: without it no inbox \
            can be read again, and both together reveal all of them.

            Run it as the user that postern serve will run as.
            """)

    @Option(help: ArgumentHelp("The folder to make.", valueName: "dir"))
    var directory: String

    @Option(
        help: ArgumentHelp(
            "A domain of relay addresses; may be repeated. New addresses are issued in the first.", valueName: "domain"))
    var relayDomain: [String]

    @Option(help: ArgumentHelp("Where mail to postmaster and abuse goes.", valueName: "address"))
    var operatorAddress: String?

    func run() throws {
        let path = try Installation.create(
            directory: directory, relayDomains: relayDomain, operatorAddress: operatorAddress, now: PosternClock.now())
        print("Made \(path)")
        print("Next: export POSTERN_CONFIG=\(path)")
    }
}
