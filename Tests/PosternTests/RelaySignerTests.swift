// A running relay applies changes of its keys.

import Accounts
import Database
import Foundation
import PosternConfiguration
import Relay
import TestSupport
import Testing

@Suite(.blocking) struct RelaySignerTests {
    @Test func refresh_keysChangedElsewhere_loadsThem() throws {
        let runner = try CommandRunner.initialised()
        let installation = try Installation.open(
            flag: runner.configuration, environment: [:], now: 1_795_000_000)
        defer { try? installation.close() }
        let signer = try RelaySigner(keys: installation.store.dkimKeys)
        #expect(signer.counts == ["relay.example": 1, "old.example": 1])
        #expect(try !signer.refresh())
        // Another process, as on another host of the same database.
        try runner.succeed("keys", "dkim", "generate", "--algorithm", "ed25519", "--selector", "ed")
        try signer.refresh()
        #expect(signer.counts == ["relay.example": 1, "old.example": 1])
        try runner.succeed("keys", "dkim", "activate", "ed", "--force")
        #expect(try signer.refresh())
        #expect(signer.counts == ["relay.example": 2, "old.example": 1])
        try runner.succeed("keys", "dkim", "generate", "--selector", "next")
        try runner.succeed("keys", "dkim", "activate", "next", "--force")
        try runner.succeed("keys", "dkim", "retire", "ed", "--force")
        #expect(try signer.refresh())
        #expect(signer.counts == ["relay.example": 1, "old.example": 1])
        #expect(try !signer.refresh())
    }

    @Test func refresh_unreadableKey_keepsTheOldKeys() throws {
        let runner = try CommandRunner.initialised()
        let installation = try Installation.open(
            flag: runner.configuration, environment: [:], now: 1_795_000_000)
        defer { try? installation.close() }
        let signer = try RelaySigner(keys: installation.store.dkimKeys)
        let change = Change(actor: "test", now: 1_795_000_000)
        let broken = try installation.store.dkimKeys.add(
            domain: "relay.example", selector: "broken", algorithm: .ed25519, bits: 256,
            privateKey: DKIMPrivateKey(pem: "no key"), change)
        _ = try installation.store.dkimKeys.activate(broken.number, change)
        let error = #expect(throws: StoreFailure.self) { try signer.refresh() }
        #expect(error?.code == .permanent(.unexpectedData))
        #expect(signer.counts == ["relay.example": 1, "old.example": 1])
        _ = try installation.store.dkimKeys.retire(broken.number, force: true, change)
        #expect(try signer.refresh())
    }
}
