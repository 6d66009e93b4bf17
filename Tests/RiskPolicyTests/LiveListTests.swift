// Live lists in policies: their declaration and meaning, and guarantees that hold for all their
// contents.

import CEL
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct LiveListTests {
    private var now: CELTimestamp {
        get throws { try #require(CELTimestamp(seconds: 1_790_000_000)) }
    }

    private func text(
        live: String =
            "live_lists: {bad: range, own: {kind: personal, of: team}, throwaway: domain}",
        condition: String =
            "context.ip in lists.bad || context.domain in lists.throwaway || context.phone in lists.own",
        more: String = ""
    ) -> String {
        """
        policy: p
        version: "1"
        challenges: [{kind: human_check}]
        defaults: {challenge: human_check}
        signals: {event: string, account.managed: bool?, context.ip: string?, context.domain: string?, context.phone: string?, context.n: int?}
        \(live)
        rules:
        - {id: r, effect: always, events: [sign_up], challenge: human_check, reason: R, condition: '\(condition)'}
        \(more)
        """
    }

    private func refusal(_ text: String) -> String {
        do throws(PolicyRefusal) {
            _ = try PolicyLoader.load(text)
            return ""
        } catch {
            return error.description
        }
    }

    private static let tests = """
        lists: {bad: [198.51.100.7/24], throwaway: [Mail.Example.], own: [' +49 30 1 ', Jane@Example.com]}
        given: {event: sign_up}
        section:
        - name: all
          tests:
          - {name: within, input: {context.ip: 198.51.100.200}, output: {decision: require_verification}}
          - {name: beside, input: {context.ip: 198.51.101.1}, output: {decision: allow, missing: [r]}}
          - {name: all_beside, input: {context: {ip: 198.51.101.1, domain: b, phone: c}}, output: {decision: allow, missing: []}}
          - {name: the_domain, input: {context.domain: mail.example}, output: {decision: require_verification}}
          - {name: below_it, input: {context.domain: A.mail.example}, output: {decision: require_verification}}
          - {name: only_ends_like_it, input: {context.domain: xmail.example}, output: {decision: allow}}
          - {name: above_it, input: {context.domain: example}, output: {decision: allow}}
          - {name: personal, input: {context.phone: jane@example.COM}, output: {decision: require_verification}}
          - {name: personal_other, input: {context.phone: joan@example.com}, output: {decision: allow}}
        """

    @Test func policyTestFile_liveLists_givesTheirEntries() throws {
        let policy = try PolicyLoader.load(text())
        let suite = try PolicyTestSuite.load(Self.tests, policy: policy)
        for result in suite.run(policy) {
            #expect(result.passed, "\(result.test.path): \(result.diff)")
        }
        #expect(suite.tests.count == 9)
        #expect(policy.decidesAtOnce)
    }

    @Test func policyTestFile_unknownListOrWrongEntry_isRefused() throws {
        let policy = try PolicyLoader.load(text())
        let faulty = Self.tests.replacing("bad: [198.51.100.7/24]", with: "bda: [198.51.100.7/24]")
        let wrongKind = Self.tests.replacing("198.51.100.7/24", with: "everywhere")
        for (text, expected) in [
            (faulty, "declares no live list 'bda'"), (wrongKind, "'everywhere' cannot be an entry"),
        ] {
            do throws(PolicyRefusal) {
                _ = try PolicyTestSuite.load(text, policy: policy)
                Issue.record("taken: \(expected)")
            } catch {
                #expect(error.description.contains(expected))
            }
        }
    }

    @Test(arguments: [
        ("live_lists: {bad: range}", "context.ip in lists.bda", "lists.bda"),
        (
            "live_lists: {bad: ranges}", "context.ip in lists.bad",
            "unknown the kind of a live list 'ranges'"
        ),
        (
            "live_lists: {bad: {kind: range, of: everyone}}", "context.ip in lists.bad",
            "unknown of 'everyone'"
        ),
        ("live_lists: {a-b: range}", "true", "'a-b' cannot be the name of a list"),
        (
            "live_lists: {bad: range}", "size(lists.bad) > 1",
            "a live list can only be on the right of"
        ),
        (
            "live_lists: {bad: range}", "lists.bad.exists(x, x == context.ip)",
            "a live list can only be on the right of"
        ),
        (
            "live_lists: {bad: range}", "lists.bad in [lists.bad]",
            "a live list can only be on the right of"
        ),
        (
            "live_lists: {bad: range}", "context.n in lists.bad",
            "'in' is not defined for int and list(string)"
        ),
    ])
    func liveList_wronglyDeclaredOrUsed_isRefused(live: String, condition: String, expected: String)
    {
        let shown = refusal(text(live: live, condition: condition))
        #expect(shown.contains(expected), "\(shown)")
    }

    /// Without lists (a backtest, `postern policy eval`) their contents are unknown.
    @Test func liveList_notKnown_isMissing() throws {
        let policy = try PolicyLoader.load(text(condition: "context.ip in lists.bad"))
        var input = policy.makeInput(event: .signUp, now: try now)
        try policy.set("context.ip", to: .string("198.51.100.7"), in: &input)
        #expect(policy.answer(policy.decide(input)).missing == ["r"])
        input.lists = FixedLiveLists()
        #expect(policy.answer(policy.decide(input)).missing.isEmpty)
    }

    @Test func liveList_interpretedCondition_seesSameEntries() throws {
        let policy = try PolicyLoader.load(
            text(condition: "[context.ip, context.domain].exists(x, x in lists.bad)"))
        #expect(!policy.decidesAtOnce)
        var lists = FixedLiveLists()
        let isTaken = lists.add("2001:db8::/32", to: LiveListName("bad", .range))
        #expect(isTaken)
        var input = policy.makeInput(event: .signUp, now: try now)
        input.lists = lists
        try policy.set("context.ip", to: .string("192.0.2.1"), in: &input)
        try policy.set("context.domain", to: .string("2001:DB8:0::1"), in: &input)
        #expect(policy.decide(input).decision == .requireVerification)
        try policy.set("context.domain", to: .string("2001:db9::1"), in: &input)
        #expect(policy.decide(input).decision == .allow)
    }

    @Test func liveList_guaranteeDependsOnIt_isRefused() {
        let guarantee = "guarantees:\n- {condition: account.managed == true, decision: allow}"
        let shown = refusal(
            text(
                live: "live_lists: {bad: text}", condition: #"context.ip in lists.bad"#,
                more: guarantee))
        #expect(shown.contains("guarantee broken"), "\(shown)")
    }
}

@Suite(.blocking) struct LiveListEntriesTests {
    @Test func liveListEntries_overlappingRangeRemoved_keepsOthers() {
        var entries = LiveListEntries(
            .range, ["10.0.0.0/8", "10.1.0.0/16", "10.1.0.0/16", "2001:db8::/32"])
        #expect(entries.count == 3)
        entries.change(adding: [String](), removing: ["10.0.0.0/8"])
        #expect(entries.contains("10.1.2.3"))
        #expect(!entries.contains("10.2.2.3"))
        entries.change(adding: ["10.2.2.3/32"], removing: ["10.1.0.0/16", "2001:db8::/32"])
        #expect(!entries.contains("10.1.2.3"))
        #expect(entries.contains("10.2.2.3"))
        #expect(!entries.contains("2001:db8::1"))
        #expect(entries.count == 1)
    }

    @Test(
        arguments: [
            ("198.51.100.7/24", LiveListKind.range, "198.51.100.0/24"),
            ("198.51.100.7", .range, "198.51.100.7/32"),
            ("2001:DB8:0::/33", .range, "2001:db8::/33"), ("::1", .range, "::1/128"),
            ("10.0.0.0/33", .range, nil),
            ("x", .range, nil),
            ("Mail.Example.", .domain, "mail.example"), ("a..b", .domain, nil),
            ("-a.example", .domain, nil), ("", .domain, nil),
            ("jane@mail.example", .domain, nil), (" Ä Jane ", .personal, "Ä jane"),
            ("  ", .personal, nil), ("A b", .text, "A b"),
            ("", .text, nil),
        ] as [(String, LiveListKind, String?)])
    func liveListEntries_anyKind_haveNormalForm(text: String, kind: LiveListKind, normal: String?) {
        #expect(LiveListEntries.normal(text, kind) == normal)
    }

    /// Against the plain definition, for many ranges and changes.
    @Test func liveListEntries_randomRanges_matchLinearSearch() {
        var generator = SystemRandomNumberGenerator()
        func range() -> (text: String, low: UInt32, high: UInt32) {
            let length = UInt32.random(in: 8...32, using: &generator)
            let host = length == 32 ? 0 : UInt32.max >> length
            let low = UInt32.random(in: 0x0A00_0000...0x0A00_FFFF, using: &generator) & ~host
            return (
                "\(low >> 24).\(low >> 16 & 255).\(low >> 8 & 255).\(low & 255)/\(length)", low,
                low | host
            )
        }
        var entries = LiveListEntries(.range)
        var kept: [String: (low: UInt32, high: UInt32)] = [:]
        for _ in 0..<60 {
            let added = (0..<20).map { _ in range() }.filter { $0.high - $0.low < 4_096 }
            let removed = Array(kept.keys.shuffled(using: &generator).prefix(8))
            for text in removed { kept[text] = nil }
            for each in added { kept[each.text] = (each.low, each.high) }
            entries.change(adding: added.map(\.text), removing: removed)
            #expect(entries.count == kept.count)
            for _ in 0..<50 {
                let address = UInt32.random(in: 0x09FF_FF00...0x0A01_00FF, using: &generator)
                let text =
                    "\(address >> 24).\(address >> 16 & 255).\(address >> 8 & 255).\(address & 255)"
                #expect(
                    entries.contains(text)
                        == kept.values.contains { $0.low <= address && address <= $0.high })
            }
        }
    }
}
