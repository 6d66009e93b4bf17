// The warm-up of a new host: its ceilings, and that it holds back forwards alone.

import InternetMessage
import MailAuth
import MailTesting
import Support
import Testing

@testable import RelayCore

@Suite struct WarmUpTests {
    private static let today = Fixture.now / 86_400

    @Test func ceilings_eachDay_riseAndNeverDouble() {
        for (before, after) in zip(WarmUp.ceilings, WarmUp.ceilings.dropFirst()) {
            #expect(after > before && after <= 2 * before)
        }
    }

    @Test func ceiling_beforeDuringAndAfter_isOfTheDay() {
        let warmUp = WarmUp(host: "mx1", firstDay: 20_000)
        #expect(warmUp.ceiling(day: 19_000) == WarmUp.ceilings[0])
        #expect(warmUp.ceiling(day: 20_000) == WarmUp.ceilings[0])
        #expect(warmUp.ceiling(day: 20_004) == 500)
        let days = Int64(WarmUp.ceilings.count)
        #expect(warmUp.ceiling(day: 20_000 + days - 1) == WarmUp.ceilings.last)
        #expect(warmUp.ceiling(day: 20_000 + days) == nil)
    }

    @Test func date_text_isReadStrictly() {
        #expect(CivilDate.days("1970-01-01") == 0)
        #expect(CivilDate.days("2024-02-29") == 19_782)
        for wrong in [
            "2026-02-29", "2026-13-01", "2026-00-10", "2026-01-00", "2026-1-01", "2026-01-1",
            "2026/01/01", "2026-01-01 ", "+026-01-01", "٢٠٢٦-01-01", "off", "",
        ] {
            #expect(CivilDate.days(wrong) == nil, "\(wrong)")
        }
    }

    private static func fixture(_ warmUp: WarmUp?, messagesPerDay: Int = 1_000) -> Fixture {
        let anna = RelayAccount(
            number: Fixture.anna.number, relayAddress: Fixture.anna.relayAddress,
            inbox: Fixture.anna.inbox, inboxes: Fixture.anna.inboxes,
            sources: Fixture.anna.sources, team: "app")
        var settings = RelaySettings(
            relayDomains: ["relay.example"], authservID: "mx.relay.example")
        settings.warmUp = warmUp
        settings.limits.messagesPerDay = messagesPerDay
        let proof = SPFFinding(
            result: .pass, identity: .mailFrom, domain: "app.example", reason: "")
        return Fixture(
            accounts: [anna], evidence: AuthenticationEvidence(spf: [proof]), settings: settings)
    }

    private static func forward(_ fixture: Fixture) -> RelayOutcome {
        fixture.play(
            from: "news@app.example", to: ["annarelay2@relay.example"],
            message: "From: news@app.example\r\nSubject: Hi\r\n\r\nHello\r\n"
        ).decision.outcome
    }

    @Test func forward_ceilingReached_isDeferredWithoutCounting() {
        let fixture = Self.fixture(WarmUp(host: "mx1", firstDay: Self.today))
        for _ in 0..<WarmUp.ceilings[0] {
            guard case .relay = Self.forward(fixture) else {
                Issue.record("not relayed")
                return
            }
        }
        guard case .refuse(let refusal) = Self.forward(fixture) else {
            Issue.record("not refused")
            return
        }
        #expect(refusal.isTemporary && refusal.reason.code == .warmUp)
        #expect(refusal.reply.code == 451 && refusal.reply.enhanced == "4.4.5")
        #expect(!refusal.reply.text.contains("other"), "the reply names no provider")
        #expect(
            fixture.directory.reserved(.forward, Fixture.anna.number) == WarmUp.ceilings[0],
            "the place of the account is free again")
    }

    @Test func forward_accountsLimitReached_usesUpNoPlaceOfTheHost() {
        let fixture = Self.fixture(
            WarmUp(host: "mx1", firstDay: Self.today), messagesPerDay: 1)
        guard case .relay = Self.forward(fixture), case .refuse(let refusal) = Self.forward(fixture)
        else {
            Issue.record("the first is relayed, the second is not")
            return
        }
        #expect(refusal.reason.code == .dailyLimit)
        #expect(fixture.directory.warmUp("mx1", "app", day: Self.today) == 1)
    }

    @Test func forward_afterTheLastDayOrOff_passesUncounted() {
        let days = Int64(WarmUp.ceilings.count)
        for warmUp in [WarmUp(host: "mx1", firstDay: Self.today - days), nil] {
            let fixture = Self.fixture(warmUp)
            guard case .relay = Self.forward(fixture) else {
                Issue.record("not relayed")
                return
            }
            #expect(fixture.directory.warmUp("mx1", "app", day: Self.today) == 0)
        }
    }
}
