// Pairs of mails with a right and a wrong guess of the user's inbox, and what comes back of both: it must be the same, but for
// the guess, whatever a mail program, a calendar or a provider does with the mail.

import Foundation
import MailTesting
import PairTesting
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct PairTests {
    static let forms: [ProgramForm] =
        (try? ProgramForm.read(
            URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .appending(path: "Vectors/programs"))) ?? []

    /// Pairs of the run of `make test` whose forwards, or answers, differ. They may only get fewer; 0 is the goal.
    private static let (knownForwards, knownAnswers) = (7_520, 5_726)

    /// How a pair is counted: some are known to tell something, within bounds.
    private static func family(_ pair: PairSpec, _ difference: Difference) -> String {
        let form = forms[pair.form]
        let isOfMadeUpPart =
            form.madeUpParts.contains("html") && Octets.holds("text/html", in: Array(difference.place.utf8))
            || form.madeUpParts.contains("plain") && Octets.holds("text/plain", in: Array(difference.place.utf8))
        return form.isUnknown ? "unknown form" : form.isMadeUp || isOfMadeUpPart ? "made up" : "with a source"
    }

    private static func outcome(of seen: Seen) -> String {
        if seen.octets != nil { return "answered" }
        return seen.replyCode.isEmpty ? "not forwarded: \(seen.forwardCode)" : "not answered: \(seen.replyCode)"
    }

    /// `POSTERN_PAIRS=SEED:COUNT` makes other pairs, and more of them. A pair that differs prints a seed: SEED:1 makes it again.
    @Test func guess_rightOrWrong_bringsTheSameBack() async throws {
        #expect(Self.forms.count > 1_000)
        let relay = PairRelay(forms: Self.forms)
        let (first, count) = Generated.settings(seed: 1, count: 10_000, variable: "POSTERN_PAIRS")
        let isByHand = ProcessInfo.processInfo.environment["POSTERN_PAIRS"] != nil
        let tally = Tally()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<ProcessInfo.processInfo.activeProcessorCount {
                group.addTask {
                    while let number = tally.next(below: count) {
                        let pair = PairSpec(seed: first &+ UInt64(number), forms: Self.forms)
                        let (differences, right) = relay.differences(pair)
                        tally.count(differences, Self.outcome(of: right))
                        for difference in differences {
                            let kind = "\(difference.kind) \(Self.forms[pair.form].action) \(difference.place)"
                            guard tally.isNew(Self.family(pair, difference), kind) else { continue }
                            let (small, other) = relay.smallest(pair, difference)
                            let example = "pair \(pair.seed), form \(Self.forms[pair.form].id): \(small)\n    \(other)"
                            tally.note(example, of: Self.family(pair, difference), kind)
                        }
                    }
                }
            }
        }
        let (all, played) = (tally.found, tally.outcomes)
        for (family, kinds) in all.sorted(by: { $0.key < $1.key }) {
            print("pairs that differ, \(family):")
            for (kind, found) in kinds.sorted(by: { $0.value.count > $1.value.count }) {
                print("  \(found.count) × \(kind): \(found.example)")
            }
        }
        let (forwards, answers) = tally.differing
        print("pairs: \(count); forwards that differ: \(forwards), answers that differ: \(answers)")
        print(played.sorted { $0.value > $1.value }.map { "\($0.value) \($0.key)" }.joined(separator: "\n"))
        #expect(forwards <= (isByHand ? 0 : Self.knownForwards) && answers <= (isByHand ? 0 : Self.knownAnswers))
        #expect(played["answered", default: 0] * 10 >= count * 8)
    }
}

/// What the pairs of a run brought, over all threads.
private final class Tally: Sendable {
    struct Found {
        var count = 0
        var example = ""
    }

    private struct State {
        var next = 0
        var found: [String: [String: Found]] = [:]
        var outcomes: [String: Int] = [:]
        var differing = (forwards: 0, answers: 0)
    }

    private let state = Mutex(State())

    var found: [String: [String: Found]] { state.withLock(\.found) }
    var outcomes: [String: Int] { state.withLock(\.outcomes) }
    var differing: (forwards: Int, answers: Int) { state.withLock(\.differing) }

    func next(below count: Int) -> Int? {
        state.withLock { state in
            state.next += 1
            return state.next <= count ? state.next - 1 : nil
        }
    }

    func count(_ differences: [Difference], _ outcome: String) {
        state.withLock { state in
            state.outcomes[outcome, default: 0] += 1
            if differences.contains(where: \.isOfForward) { state.differing.forwards += 1 }
            if differences.contains(where: { !$0.isOfForward }) { state.differing.answers += 1 }
        }
    }

    func isNew(_ family: String, _ kind: String) -> Bool {
        state.withLock { state in
            state.found[family, default: [:]][kind, default: Found()].count += 1
            return state.found[family]?[kind]?.count == 1
        }
    }

    func note(_ example: String, of family: String, _ kind: String) {
        state.withLock { $0.found[family]?[kind]?.example = example }
    }
}
