// postern keys signing: the keys that sign the identity tokens and events that Postern issues.

import ArgumentParser
import Database
import Foundation
import SignIn
import Support

struct SigningKeysCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "signing",
        abstract: "List, rotate and retire the keys that sign identity tokens and events.",
        discussion: """
            For each algorithm, one key signs (active), one is published before it is used (next), and replaced keys \
            (retiring) stay published until nothing that they signed can be in use. Rotation therefore leaves no gap. The \
            first two keys are generated when they are first needed: for ES256, which events and most apps use, at the \
            start; for RS256, when an app first asks for it (postern app client). Keys are sealed in the database, and their \
            public parts are published at /auth/keys. A running service applies changes within seconds.

            To rotate: postern keys signing rotate, at most once a day. If a key was stolen: rotate --early twice, then \
            retire the two replaced keys.
            """,
        subcommands: [List.self, Generate.self, Rotate.self, Retire.self, Published.self])

    private static func members(_ key: IdentityKey) -> Members {
        [
            "kid": key.keyID, "algorithm": key.algorithm.rawValue, "state": key.state.rawValue,
            "created_at": timestamp(key.createdAt),
            "activated_at": key.activatedAt.map(timestamp),
            "deactivated_at": key.deactivatedAt.map(timestamp),
            "retired_at": key.retiredAt.map(timestamp),
        ]
    }

    struct Generate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Generate the first two keys of an installation.",
            discussion: "Does nothing if there are keys already.")

        @OptionGroup var options: InstallationOptions

        mutating func run() async throws {
            let (active, next) = (try newKey(.es256), try newKey(.es256))
            let isNew = try options.withStore {
                try $0.identityKeys.install(active: active, next: next, thisChange())
            }
            print(
                isNew
                    ? "\(active.keyID) signs now; \(next.keyID) is the next."
                    : "There are keys already: see postern keys signing list.")
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the keys.",
            discussion: """
                next: published, but does not sign yet. active: signs. retiring: replaced, and stays published for its \
                signatures. retired: no longer published, and the private key is deleted.
                """)

        @OptionGroup var options: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let keys = try options.withStore { try $0.identityKeys.keys() }
            try output.print(keys, ["KID", "ALGORITHM", "STATE", "SINCE"], json: members) { key in
                let since: Int64? =
                    switch key.state {
                    case .next: key.createdAt
                    case .active: key.activatedAt
                    case .retiring: key.deactivatedAt
                    case .retired: key.retiredAt
                    }
                return [
                    key.keyID, key.algorithm.rawValue, key.state.rawValue,
                    timestamp(since ?? key.createdAt),
                ]
            }
        }
    }

    struct Rotate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Sign with the next key from now on, and publish another one as the next.",
            discussion: """
                Refused if the next key has been published for less than \
                \(IdentityKeyRepository.publicationBeforeUse / 3600) hours: receivers that cache the key set would not know \
                it.
                """)

        @Flag(
            help:
                "Rotate even if receivers may not know the next key yet: until they fetch it, they refuse its signatures."
        )
        var early = false
        @OptionGroup var options: InstallationOptions

        mutating func run() async throws {
            let results = try options.withStore { store in
                let algorithms = try store.identityKeys.algorithms()
                // If there are no keys, the refusal says how to generate them.
                let replacements = try (algorithms.isEmpty ? [.es256] : algorithms).map(newKey)
                return try store.identityKeys.rotate(
                    replacements: replacements, early: early, thisChange())
            }
            for result in results {
                print("\(result.active.keyID) signs now; \(result.next.keyID) is the next.")
                let end =
                    (result.replaced.deactivatedAt ?? PosternClock.now())
                    + IdentityKeyRepository.publicationAfterUse
                print("\(result.replaced.keyID) stays published until \(timestamp(end)).")
            }
        }
    }

    struct Retire: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Retire a replaced key early.",
            discussion:
                "Receivers refuse tokens and events that it signed once they fetch the key set again."
        )

        @Argument(help: "The key's id.") var kid: String
        @Flag(help: "Confirm. Without it nothing is changed.") var yes = false
        @OptionGroup var options: InstallationOptions

        func run() throws {
            let key = try options.withStore { store in
                guard
                    try store.identityKeys.keys().contains(where: {
                        $0.keyID.hasSameOctets(as: kid)
                    })
                else {
                    throw StoreFailure.refused(
                        .notFound, "there is no signing key \(kid): see postern keys signing list")
                }
                guard yes else {
                    throw CommandError.usage(
                        "everything that \(kid) signed will be refused: repeat with --yes to retire it; nothing was changed"
                    )
                }
                return try store.identityKeys.retire(kid, thisChange())
            }
            print("Retired \(key.keyID).")
        }
    }

    struct Published: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "jwks", abstract: "Print the key set as it is published at /auth/keys.")

        @OptionGroup var options: InstallationOptions

        func run() throws {
            let published = try options.withStore { try $0.identityKeys.signing().published }
            let keys = try published.map {
                try StrictJSON.parseObject(Array($0.publicJWK.utf8), limit: 4096)
            }
            print(String(decoding: PublishedKeys.document(keys), as: UTF8.self))
        }
    }
}

private func newKey(_ algorithm: SignatureAlgorithm) throws -> NewIdentityKey {
    do {
        return try NewIdentityKey.generate(algorithm)
    } catch {
        throw CommandError(status: EX_SOFTWARE, message: "\(error)")
    }
}
