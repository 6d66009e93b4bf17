// Confirmations of inboxes by code and link: their limits, their lifetime and their users.

import Accounts
import InternetMessage
import RelayCore
import TestSupport
import Testing

@Suite(.blocking) struct InboxConfirmationRepositoryTests {
    private static let limits = NoticeLimits(
        lifetime: 3600, tries: 3, perInbox: 2, perUser: 4, perInstallation: 6)

    private func begin(
        _ test: TestStore, _ user: String = "anna", inbox: Int64 = 1, at now: Int64 = TestStore.now
    ) throws -> PendingConfirmation {
        try test.store.verifications.begin(
            user: user, .number(inbox), limits: Self.limits, Change(actor: "uid:0", now: now))
    }

    private func confirm(
        _ test: TestStore, _ code: String, inbox: Int64 = 1, at now: Int64 = TestStore.now
    ) throws {
        _ = try test.store.verifications.confirm(
            user: "anna", .number(inbox), code: code, limits: Self.limits,
            Change(actor: "uid:0", now: now))
    }

    private func isVerified(_ test: TestStore) throws -> Bool {
        try test.store.inboxes.inboxes(user: "anna").first?.isVerified == true
    }

    private func unverified(_ engine: Engine) throws -> TestStore {
        let test = try TestStore(engine)
        try test.user("anna", inbox: "anna@home.example", isVerified: false)
        return test
    }

    private func wrong(_ code: String) -> String { code == "000000" ? "000001" : "000000" }

    @Test(arguments: Engine.all) func code_anySpacing_confirmsInbox(_ engine: Engine) throws {
        let test = try unverified(engine)
        let pending = try begin(test)
        #expect(pending.code.count == 6 && !"\(pending)".contains(pending.code))
        try confirm(test, " \(pending.code.prefix(3)) \(pending.code.suffix(3))")
        #expect(try isVerified(test))
        #expect(
            try test.store.audit.entries().first.map { "\($0.action) \($0.detail)" }
                == "inbox.confirm inbox 1 by code")
        // A confirmed inbox is not confirmed again, and a code for it is not checked.
        expectRefusal(.exists) { _ = try begin(test) }
        try confirm(test, wrong(pending.code))
    }

    @Test(arguments: Engine.all) func code_wrongTooOften_isRefused(_ engine: Engine) throws {
        let test = try unverified(engine)
        let pending = try begin(test)
        for left in [2, 1, 0] {
            expectRefusal(.invalid) { try confirm(test, wrong(pending.code)) }
            #expect(
                try test.store.verifications.state(
                    user: "anna", inbox: 1, limits: Self.limits, now: TestStore.now)?.triesLeft
                    == left)
        }
        expectRefusal(.unmet) { try confirm(test, pending.code) }
        #expect(try !isVerified(test))
        // Another message has another code and new tries; the old code is invalid.
        let second = try begin(test)
        if second.code != pending.code {
            expectRefusal(.invalid) { try confirm(test, pending.code) }
        }
        try confirm(test, second.code)
        #expect(try isVerified(test))
    }

    @Test(arguments: Engine.all) func verification_expired_confirmsNothing(_ engine: Engine) throws
    {
        let test = try unverified(engine)
        let pending = try begin(test)
        let late = TestStore.now + 3600
        expectRefusal(.unmet) { try confirm(test, pending.code, at: late) }
        expectRefusal(.unmet) {
            _ = try test.store.verifications.confirm(link: pending.linkToken, now: late)
        }
        let author = AddrSpec(localPart: "anna", domain: "home.example")
        #expect(
            try test.store.verifications.recordAnswer(
                to: AnswerToken(
                    number: UInt64(pending.number), nonce: UInt64(pending.answerNonce), expiryDay: 0
                ), author: author,
                now: late)
                == .notTheInbox)
        #expect(try test.store.verifications.deleteExpired(now: late) == 1)
    }

    @Test(arguments: Engine.all) func link_usedTwice_confirmsInboxOnce(_ engine: Engine) throws {
        let test = try unverified(engine)
        let pending = try begin(test)
        expectRefusal(.unmet) {
            _ = try test.store.verifications.confirm(
                link: pending.linkToken + "a", now: TestStore.now)
        }
        #expect(
            try test.store.verifications.inbox(link: pending.linkToken, now: TestStore.now)?.isNew
                == true)
        #expect(try !isVerified(test))
        #expect(
            try test.store.verifications.confirm(link: pending.linkToken, now: TestStore.now).isNew)
        #expect(
            try test.store.verifications.confirm(link: pending.linkToken, now: TestStore.now).isNew
                == false)
        #expect(try isVerified(test))
    }

    @Test(arguments: Engine.all)
    func recordAnswer_ofTheMailboxInAnySpelling_isFirstOnceADayAndConfirmsNothing(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("anna", inbox: "anna.b@gmail.com", isVerified: false)
        try test.store.users.setLanguage(of: "anna", "de")
        let limits = NoticeLimits(lifetime: 3 * 86_400)
        let pending = try test.store.verifications.begin(
            user: "anna", .number(1), limits: limits, TestStore.change)
        func answer(
            _ author: String, nonce: Int64? = nil, trial: Bool = false,
            at now: Int64 = TestStore.now
        ) throws -> AnswerRecord {
            let token = AnswerToken(
                number: UInt64(pending.number), nonce: UInt64(nonce ?? pending.answerNonce),
                expiryDay: 0)
            return try test.store.verifications.recordAnswer(
                to: token, author: AddrSpec.typed(author), isTrial: trial, now: now)
        }
        #expect(try answer("annab2@gmail.com") == .notTheInbox)
        #expect(try answer("annab@gmail.com", nonce: pending.answerNonce ^ 1) == .notTheInbox)
        #expect(try answer("annab@gmail.com", trial: true) == .first(language: "de"))
        #expect(try answer("AnnaB+x@googlemail.com") == .first(language: "de"))
        #expect(try answer("anna.b@gmail.com") == .repeated)
        #expect(
            try answer("anna.b@gmail.com", at: TestStore.now + 86_400) == .first(language: "de"))
        #expect(try !isVerified(test))
    }

    @Test(arguments: Engine.all) func verification_overMessageLimits_isRefused(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("anna", inbox: "anna.b@gmail.com", isVerified: false)
        // All spellings of one mailbox share its limit.
        _ = try test.store.inboxes.add(
            user: "anna", TestStore.inbox("annab+x@googlemail.com"), isVerified: false,
            isReplyOnly: false, TestStore.change)
        _ = try begin(test)
        _ = try begin(test, inbox: 2)
        expectRefusal(.limit) { _ = try begin(test) }
        for number in 3...4 {
            _ = try test.store.inboxes.add(
                user: "anna", TestStore.inbox("other\(number)@home.example"), isVerified: false,
                isReplyOnly: false,
                TestStore.change)
        }
        _ = try begin(test, inbox: 3)
        _ = try begin(test, inbox: 3)
        expectRefusal(.limit) { _ = try begin(test, inbox: 4) }
        try test.user("bob", inbox: "bob@home.example", isVerified: false)
        try test.user("eve", inbox: "eve@home.example", isVerified: false)
        for user in ["bob", "eve"] { _ = try begin(test, user, inbox: 1) }
        expectRefusal(.limit) { _ = try begin(test, "eve", inbox: 1) }
        // The hour is a sliding window.
        _ = try begin(test, at: TestStore.now + 3600)
    }

    @Test(arguments: Engine.all) func verification_limitReached_saysWhenToTryAgain(
        _ engine: Engine
    ) throws {
        let test = try unverified(engine)
        func refusal(at time: Int64) -> String {
            do {
                _ = try begin(test, at: time)
                return "taken"
            } catch {
                return "\(error)"
            }
        }
        _ = try begin(test, at: TestStore.now)
        _ = try begin(test, at: TestStore.now + 600)
        // The wait until the oldest is an hour old, in whole minutes.
        #expect(
            refusal(at: TestStore.now + 600).hasSuffix("try again in 50 minutes"),
            "\(refusal(at: TestStore.now + 600))")
        #expect(
            refusal(at: TestStore.now + 3_541).hasSuffix("try again in 1 minute"),
            "\(refusal(at: TestStore.now + 3_541))")
        #expect(refusal(at: TestStore.now + 3_600) == "taken")
        #expect(refusal(at: TestStore.now + 3_600).hasSuffix("try again in 10 minutes"))
    }

    @Test(arguments: Engine.all) func verification_inboxOfOtherUser_isRefusedWhenConfirmed(
        _ engine: Engine
    ) throws {
        let test = try unverified(engine)
        let pending = try begin(test)
        try test.user("owner", inbox: "anna@home.example")
        expectRefusal(.exists) { try confirm(test, pending.code) }
        expectRefusal(.exists) {
            _ = try test.store.verifications.confirm(link: pending.linkToken, now: TestStore.now)
        }
        #expect(try !isVerified(test))
    }

    @Test(arguments: Engine.all) func verification_inboxRemoved_isDeleted(_ engine: Engine) throws {
        let test = try unverified(engine)
        let pending = try begin(test)
        #expect(
            try test.store.verifications.inbox(link: pending.linkToken, now: TestStore.now) != nil)
        try test.store.inboxes.remove(user: "anna", .number(1), TestStore.change)
        #expect(
            try test.store.verifications.inbox(link: pending.linkToken, now: TestStore.now) == nil)
    }

    @Test(arguments: Engine.all) func verification_codeAndLink_areStoredAsHashes(
        _ engine: Engine
    ) throws {
        let test = try unverified(engine)
        let pending = try begin(test)
        let rows = try test.database.read {
            try $0.rows("SELECT code_hash, link_hash FROM inbox_verifications")
        }
        #expect(rows.count == 1)
        for row in rows {
            let (code, link): ([UInt8], [UInt8]) = try (row["code_hash"], row["link_hash"])
            #expect(code.count == 32 && link.count == 32)
            #expect(link != Array(pending.linkToken.utf8))
        }
        for entry in try test.store.audit.entries() {
            #expect(!"\(entry)".contains(pending.code) && !"\(entry)".contains(pending.linkToken))
        }
    }
}
