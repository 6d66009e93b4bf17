// postern init: a new data folder.

import Accounts
import Administration
import ArgumentParser
import MailAuth
import PosternConfiguration
import Relay

struct InitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Create a data folder with configuration, keys and an empty database.",
        discussion: """
            The folder (mode 0700) then holds postern.yaml with every key explained, postern.keys (mode 0600) and \
            postern.db. Nothing is overwritten. Keep a copy of postern.keys, separate from copies of the database: without \
            it no inbox can be read, and both together reveal all of them.

            It also generates an RSA key for each relay domain, which signs from the first message on, and prints its DNS \
            record. Until the record is in the DNS, verifiers treat the mail as unsigned; after that it counts as signed, \
            with no further step.

            Run it as the user that postern serve will run as.

            With --database the store is in PostgreSQL. Further hosts get copies of postern.yaml and postern.keys. Keep the \
            password out of the URL: libpq reads it from ~/.pgpass of that user.
            """)

    @Option(help: ArgumentHelp("The folder to create.", valueName: "dir"), transform: filePath)
    var directory: String

    @Option(
        help: ArgumentHelp(
            "A domain of relay addresses; may be repeated. New addresses are issued in the first.",
            valueName: "domain"))
    var relayDomain: [String]

    @Option(help: ArgumentHelp("Where mail to postmaster and abuse goes.", valueName: "address"))
    var operatorAddress: String?

    @Option(
        help: ArgumentHelp(
            "PostgreSQL instead of a SQLite file, for several relay hosts. The database must exist and be empty.",
            valueName: "postgresql://user@host/name"))
    var database: String?

    @Option(
        help: ArgumentHelp(
            "Set a configuration key in the new file, as in http.public_url=https://id.example; may be repeated.",
            valueName: "key=value"))
    var set: [String] = []

    func run() throws {
        if let database, !database.contains("://") {
            throw CommandError.usage(
                "--database must be a URL, as in postgresql://postern@db.example/postern; a file is always postern.db"
            )
        }
        let path = try Installation.create(
            directory: directory, relayDomains: relayDomain, operatorAddress: operatorAddress,
            database: database, set: set,
            change: thisChange())
        print("Made \(path)")
        let installation = try Installation.open(
            flag: path, environment: [:], now: PosternClock.now())
        defer { try? installation.close() }
        print(
            "Publish this record in the DNS, so that mail from the relay counts as signed (postern keys dkim publish prints it again):\n"
        )
        for key in try installation.store.dkimKeys.keys() {
            print(try DKIMKeyMaker.publication(key, in: installation.store).zoneFileRecord)
        }
        if operatorAddress == nil {
            print(
                "\nSet operator_address in postern.yaml: until then mail to postmaster and abuse waits at its senders (451)."
            )
        }
        print("\nNext: export POSTERN_CONFIG=\(path)")
    }
}
