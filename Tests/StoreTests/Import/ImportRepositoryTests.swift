// Import into the store: whole rows or nothing, nothing twice, and rehearsals that leave no change.

import Accounts
import Administration
import Database
import InternetMessage
import TestSupport
import Testing

@Suite(.blocking) struct ImportRepositoryTests {
    private func row(
        _ user: String, inbox: String? = nil, isVerified: Bool = true, team: String? = nil,
        sub: String? = nil,
        address: String? = nil
    ) throws -> ImportRow {
        ImportRow(
            user: user, name: nil,
            inbox: try inbox.map {
                ImportRow.Inbox(
                    address: try TestStore.inbox($0), isVerified: isVerified, isDefault: false,
                    isReplyOnly: false)
            },
            account: try team.map {
                ImportRow.Account(team: $0, sub: sub, address: try address.map(AddrSpec.typed))
            })
    }

    private func refusals(_ outcomes: [ImportOutcome]) -> [StoreFailure.Refused?] {
        outcomes.map {
            if case .refused(let failure) = $0, case .refused(let code) = failure.code {
                code
            } else {
                nil
            }
        }
    }

    @Test(arguments: Engine.all) func import_badRow_leavesNothingAndTakesOthers(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let rows = [
            try row("u1", inbox: "u1@home.example", team: "juice"),
            // The user and the inbox would be new; the team does not exist.
            try row("u2", inbox: "u2@home.example", team: "milk"),
            try row("u3", inbox: "u1@home.example"),
            try row(
                "u4", inbox: "u4@home.example", team: "juice", sub: "001.a",
                address: "abcdefghij@relay.example"),
            try row("u5", inbox: "u5@home.example", team: "juice", sub: "001.a"),
            try row(
                "u6", inbox: "u6@home.example", team: "juice", address: "abcdefghij@relay.example"),
        ]
        let outcomes = try test.store.imports.apply(rows, TestStore.change)
        #expect(refusals(outcomes) == [nil, .notFound, .exists, nil, .exists, .exists])
        #expect(try test.store.users.all().map(\.id) == ["u1", "u4"])
        #expect(
            try test.store.addresses.addresses(user: "u4").map(\.address.wireForm) == [
                "abcdefghij@relay.example"
            ])
        let again = try test.store.imports.apply(rows, TestStore.change)
        #expect(refusals(again) == refusals(outcomes))
        for outcome in again { if case .done(let counts) = outcome { #expect(counts.isEmpty) } }
    }

    @Test(arguments: Engine.all) func import_endedSubOrAddress_isRefused(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let first = try row(
            "u1", inbox: "u1@home.example", team: "juice", sub: "001.a",
            address: "abcdefghij@relay.example")
        _ = try test.store.imports.apply([first], TestStore.change)
        let account = try #require(try test.store.accounts.accounts(user: "u1").first)
        try test.store.accounts.delete(account: account.number, TestStore.change)
        #expect(refusals(try test.store.imports.apply([first], TestStore.change)) == [.exists])
        let second = try row(
            "u2", inbox: "u2@home.example", team: "juice", address: "abcdefghij@relay.example")
        #expect(refusals(try test.store.imports.apply([second], TestStore.change)) == [.exists])
    }

    @Test(arguments: Engine.all) func import_revokedConsent_staysRevoked(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let row = try row("u1", inbox: "u1@home.example", team: "juice")
        _ = try test.store.imports.apply([row], TestStore.change)
        let account = try #require(try test.store.accounts.accounts(user: "u1").first)
        try test.store.grants.revokeAll(account: account.number, TestStore.change)
        _ = try test.store.imports.apply([row], TestStore.change)
        #expect(try test.store.grants.grants(account: account.number).map(\.state) == [.revoked])
    }

    @Test(arguments: Engine.all) func import_rehearsed_leavesNothing(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let rows = [try row("u1", inbox: "u1@home.example", team: "juice"), try row("u2")]
        for isInTransaction in [false, true] {
            let body: (any Database) throws(StoreFailure) -> [ImportOutcome] = {
                database throws(StoreFailure) in
                let store = Store(
                    database: database, keys: TestStore.keys(), relayDomains: ["relay.example"])
                let outcomes = try store.imports.apply(rows, TestStore.change)
                #expect(try store.users.all().count == 1)
                return outcomes
            }
            let outcomes =
                isInTransaction
                ? try test.database.rehearsedInTransaction(body) : try test.database.rehearse(body)
            #expect(refusals(outcomes) == [nil, .unmet])
            #expect(try test.store.users.all().isEmpty)
        }
    }
}
