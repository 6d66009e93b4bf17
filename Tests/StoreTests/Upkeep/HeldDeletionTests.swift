// Every statement that deletes rows which a hold can keep is in one file.

import Accounts
import Database
import Foundation
import TestSupport
import Testing

@Suite struct HeldDeletionTests {
    private static let sources = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Sources")

    /// Statements with the name of a table in a variable: the file, and the tables that it has.
    /// `nil`: `RemovalRepository` filters its tables by holds, and a copy of a whole store is put
    /// back to its beginning.
    private static let variable: [String: [String]?] = [
        "Accounts/Accounts/AccountRepository.swift": [
            "relay_addresses", "external_identities", "transfer_subs", "account_notes",
            "given_names", "account_blocks", "last_mail", "account_refusals_told",
        ],
        "Accounts/Accounts/GrantRepository.swift": ["authorization_codes", "refresh_tokens"],
        "Accounts/Apps/AppRepository.swift": [
            "app_redirects", "client_secrets", "logout_redirects", "policy_app_bindings",
            "attested_apps",
        ],
        "Accounts/Teams/TeamRepository.swift": [
            "outbound_sources", "source_claims", "api_keys", "client_keys", "policy_team_bindings",
        ],
        "Accounts/Transfers/TransferRepository.swift": [],
        "Accounts/Inboxes/InboxConfirmationRepository.swift": [],
        "SignIn/Provider/ProviderRepository.swift": [],
        "SignIn/Sessions/PortalRepository.swift": [],
        "Decisions/Devices/DeviceRepository.swift": ["device_accounts", "devices"],
        "Accounts/Upkeep/FreezeRepository.swift": [],
        "Accounts/Upkeep/HeldDeletions.swift": nil,
        "Accounts/Upkeep/RemovalRepository.swift": nil,
        "Administration/StoreRewind.swift": nil,
    ]

    /// The tables of which a hold can keep rows, and those with which the database deletes or
    /// detaches such rows.
    private static func guarded(_ test: TestStore) throws -> Set<String> {
        let tables = try test.database.values(
            "SELECT name FROM sqlite_schema WHERE type = 'table'", String.self)
        var parents: [String: Set<String>] = [:]
        for table in tables {
            parents[table] = Set(
                try test.database.rows(
                    """
                    SELECT "table" AS parent FROM pragma_foreign_key_list(\(table))
                    WHERE on_delete IN ('CASCADE', 'SET NULL')
                    """
                ).map { try $0["parent"] as String })
        }
        var found = Set(HeldTable.all.map(\.name))
        var next = found
        while !next.isEmpty {
            next = next.reduce(into: Set()) { $0.formUnion(parents[$1] ?? []) }.subtracting(found)
            found.formUnion(next)
        }
        // What an account refers to is not kept with it: it becomes NULL there.
        return found.subtracting(["inboxes"])
    }

    private static func deletions() throws -> [(file: String, table: Substring)] {
        let paths = try #require(FileManager.default.subpaths(atPath: sources.path))
        return try paths.filter { $0.hasSuffix(".swift") }.flatMap { path in
            let text = try String(contentsOf: sources.appending(path: path), encoding: .utf8)
            return text.matches(of: /DELETE FROM ([a-z_]+|\\\([^)]*\))/).map {
                (file: path, table: $0.output.1)
            }
        }
    }

    @Test func deletions_ofHeldRows_areDeclaredInOnePlace() throws {
        let guarded = try Self.guarded(TestStore(.sqlite))
        #expect(guarded.isSuperset(of: ["decisions", "grants", "accounts", "users", "teams"]))
        let deletions = try Self.deletions()
        #expect(deletions.count > 100)
        var places: Set<String> = []
        for (file, table) in deletions {
            if table.hasPrefix("\\") {
                let tables = Self.variable[file]
                #expect(tables != nil, "\(file) deletes from \(table)")
                places.insert(file)
            } else if guarded.contains(String(table)) {
                #expect(
                    file == "Accounts/Upkeep/HeldDeletions.swift",
                    "\(file) deletes from \(table), which a hold can keep")
            }
        }
        #expect(places == Set(Self.variable.keys))
        for (file, tables) in Self.variable {
            guard let tables else { continue }
            #expect(guarded.isDisjoint(with: tables), "\(file)")
            let text = try String(
                contentsOf: Self.sources.appending(path: file), encoding: .utf8)
            for table in guarded where table != "audit" {
                #expect(!text.contains("\"\(table)\""), "\(file) names \(table) in a variable")
            }
        }
    }
}
