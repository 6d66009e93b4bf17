// postern keys file: the keys in the key file, and their replacement.

import Accounts
import Administration
import ArgumentParser
import Database
import Foundation
import Monitoring
import Support

struct KeyFileCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "file",
        abstract: "Show, rotate and retire the keys in the key file, which seal and find inboxes.",
        subcommands: [Show.self, Rotate.self, Retire.self])

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the keys, their purpose, and how many values each one made.",
            discussion: "No secret is shown. Counting scans the tables of inboxes and names.")

        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        private struct Row: Encodable {
            let purpose: String
            let id: String
            let state: String
            let fingerprint: String
            /// Null for tokens, because they are in other people's mail and cannot be counted.
            let values: Int?
        }

        func run() throws {
            let rows = try installation.withStore { store in
                let usage = try store.keyRotation.usage()
                let ring = store.keys.current
                return KeyPurpose.allCases.flatMap { purpose in
                    (ring[purpose]?.versions ?? []).map { version in
                        let isCounted = purpose == .seal || purpose == .index
                        let count =
                            usage.first { $0.purpose == purpose && $0.key == version.idText }?.count
                            ?? 0
                        return Row(
                            purpose: purpose.rawValue, id: version.idText,
                            state: ring[purpose]?.state(of: version).rawValue ?? "",
                            fingerprint: version.fingerprint, values: isCounted ? count : nil)
                    }
                }
            }
            try output.print(rows, ["PURPOSE", "ID", "STATE", "FINGERPRINT", "VALUES"]) {
                [$0.purpose, $0.id, $0.state, $0.fingerprint, $0.values.map { "\($0)" } ?? "-"]
            }
        }
    }

    struct Rotate: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Replace keys while the relay runs.",
            discussion: """
                A new key is added to the key file. When every running postern serve knows it, new values are made with it. \
                Then all values of the old key are converted, in small batches. Finally the old key is removed, if no value \
                uses it. The command may be interrupted at any point: the next run continues from there.

                Other hosts have their own key files. If one lacks the keys that the next step needs, the command names that \
                host and exits with status 75: copy the key file there, and run the command again.

                seal and index (the default) open and find inboxes. token signs reverse addresses and return paths, which \
                are stored in other people's mail: old keys keep verifying until postern keys file retire.
                """)

        @Argument(help: "seal, index or token.", completion: .list(["seal", "index", "token"]))
        var purposes: [String] = ["seal", "index"]
        @Flag(
            help:
                "Exit now and let postern serve convert the existing values. Run the command again later to remove the old keys."
        )
        var background = false
        @Option(
            help: ArgumentHelp(
                "How long to wait for other services to see the key file.", valueName: "seconds"))
        var wait = 15

        @OptionGroup var installation: InstallationOptions

        func run() throws {
            let purposes = try purposes.map(replaceable)
            try installation.withInstallation { installation in
                let database = installation.store.database
                guard let lock = try database.lock("key-file") else {
                    throw CommandError(
                        status: EX_TEMPFAIL,
                        message:
                            "another command is changing the key file: wait until it has finished")
                }
                defer { lock.release() }
                let rotation = KeyRotation(installation, now: PosternClock.now)
                let path = installation.configuration.keyFilePath
                let added = try rotation.add(purposes)
                for purpose in added { print("Added a new \(purpose.rawValue) key to \(path)") }
                // Printed even if a later step fails: values that are written from now on need the
                // key.
                if !added.isEmpty {
                    print(
                        "Copy \(path) now to where its copy is kept, apart from the backups: new backups need it"
                    )
                }
                var heard: [KeyRotation.Laggard: ContinuousClock.Instant] = [:]
                try waitForAll(rotation, path, "do not know the new keys yet", &heard)
                try rotation.activate()
                try waitForAll(rotation, path, "do not use the new keys yet", &heard)
                try rotation.demand(thisChange())
                print("New values are made with \(Self.active(installation.keys))")
                guard purposes != [.token] else {
                    return print(
                        "Old token keys keep verifying. Remove one with postern keys file retire token ID when its time is over."
                    )
                }
                guard !background else {
                    return print(
                        "postern serve converts the remaining values; run this again to remove the old keys."
                    )
                }
                try reencrypt(rotation, database)
                for (purpose, id) in try rotation.removeUnused(thisChange()) {
                    print("Removed the old \(purpose.rawValue) key \(id): no value uses it")
                }
                let others = Set(try rotation.laggards().map(\.host)).sorted()
                if !others.isEmpty {
                    print(
                        "Copy \(path) to \(others.joined(separator: ", ")), so that the old keys are gone there too."
                    )
                }
            }
        }

        private static func active(_ ring: KeyRing) -> String {
            "seal \(ring.seal.active.idText), index \(ring.index.active.idText), token \(ring.token.active.idText)"
        }

        /// - Parameter heard: for each service, the time since which its reports have not changed.
        private func waitForAll(
            _ rotation: KeyRotation, _ path: String, _ what: String,
            _ heard: inout [KeyRotation.Laggard: ContinuousClock.Instant]
        ) throws {
            let end = ContinuousClock.now + .seconds(max(0, wait))
            while true {
                // A service that was killed may leave a report with a future time if its clock was
                // fast. A service whose reports do not change counts as ended, even if its last
                // report has a later time.
                let laggards = try rotation.laggards().filter { laggard in
                    let since = heard[laggard] ?? .now
                    heard[laggard] = since
                    return ContinuousClock.now - since <= .seconds(ServiceSnapshot.timeout)
                }
                if laggards.isEmpty { return }
                guard ContinuousClock.now < end else {
                    let names = laggards.map { "\($0.host) (pid \($0.pid))" }.joined(
                        separator: ", ")
                    throw CommandError(
                        status: EX_TEMPFAIL,
                        message:
                            "services that \(what): \(names). Copy \(path) there, where each reads it within a second, and run this again"
                    )
                }
                Thread.sleep(forTimeInterval: 0.25)
            }
        }

        private func reencrypt(_ rotation: KeyRotation, _ database: any Database) throws {
            var bar: ProgressBar?
            defer { bar?.clear() }
            // A service that is converting values has the lock. This command waits, and converts
            // what is left.
            var lock = try database.lock("key-rotation")
            while lock == nil {
                Thread.sleep(forTimeInterval: 0.25)
                lock = try database.lock("key-rotation")
            }
            defer { lock?.release() }
            let count = try rotation.reencrypt(pause: 0) { seen, total in
                if bar == nil { bar = ProgressBar(total: total) }
                bar?.update(done: seen, count: seen, of: "values")
                return true
            }
            bar?.clear()
            if count > 0 { print("Converted \(Count.text(Int(count), "row"))") }
        }
    }

    struct Retire: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove an old key from the key file.",
            discussion: """
                The values of an old token key become invalid: reverse addresses in users' address books, and return paths in \
                transit. Keys that still seal or index something are not removed.
                """)

        @Argument(help: "seal, index or token.")
        var purpose: String
        @Argument(help: "The key's id, as in postern keys file show.")
        var id: String
        @Flag(help: "Confirm: the values of the key become invalid.")
        var yes = false
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            let purpose = try replaceable(self.purpose)
            try installation.withInstallation { installation in
                let rotation = KeyRotation(installation, now: PosternClock.now)
                try rotation.requireOld(purpose, id: id)
                guard yes else {
                    throw CommandError.usage(
                        "retiring \(purpose.rawValue) key \(id) invalidates its values: repeat with --yes to do so; "
                            + "nothing was changed")
                }
                guard let lock = try installation.store.database.lock("key-file") else {
                    throw CommandError(
                        status: EX_TEMPFAIL,
                        message:
                            "another command is changing the key file: wait until it has finished")
                }
                defer { lock.release() }
                try rotation.retire(purpose, id: id, thisChange())
                print("Retired \(purpose.rawValue) key \(id)")
            }
        }
    }
}

/// A purpose whose keys can be replaced.
private func replaceable(_ text: String) throws -> KeyPurpose {
    let allowed: [KeyPurpose] = [.seal, .index, .token]
    guard let purpose = KeyPurpose(rawValue: text), allowed.contains(purpose) else {
        throw CommandError.usage(
            "\(text): must be one of \(allowed.map(\.rawValue).joined(separator: ", "))")
    }
    return purpose
}
