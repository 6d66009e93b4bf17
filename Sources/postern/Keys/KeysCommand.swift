// postern keys: all keys of the installation.

import Accounts
import ArgumentParser
import Database
import SignIn

struct KeysCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys",
        abstract: "List, rotate and retire the keys of the installation, of all three kinds.",
        discussion: """
            file: the keys in the key file, which seal and find inboxes and make addresses. dkim: the keys that sign relayed \
            mail. signing: the keys that sign identity tokens and events. Without a subcommand, all of them are listed.

            Other keys: those for the HTTP API (postern api-key), and those with which an app's backend authenticates \
            (postern app key).
            """,
        subcommands: [
            List.self, KeyFileCommand.self, DKIMKeysCommand.self, SigningKeysCommand.self,
        ],
        defaultSubcommand: List.self)

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the keys of the installation, and the next step of each.",
            discussion: """
                Retired keys are left out, since their private parts are deleted: postern keys dkim list and postern keys \
                signing list show them. The key file has no times.
                """)

        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let now = PosternClock.now()
            let keys = try installation.withStore { store in
                InstallationKey.all(store.keys.current)
                    + (try store.dkimKeys.keys()).compactMap { InstallationKey($0, now: now) }
                    + (try store.identityKeys.keys()).compactMap { InstallationKey($0, now: now) }
            }
            try output.print(keys, ["KIND", "ID", "STATE", "SINCE", "NEXT"], json: \.members) {
                [$0.kind.rawValue, $0.words, $0.state, $0.since.map(timestamp) ?? "-", $0.next]
            }
        }
    }
}
