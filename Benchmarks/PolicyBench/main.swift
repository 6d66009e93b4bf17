// Decisions per second of the default policy on one core: compact, answered in full, with trace,
// and compared with the same policy written by hand. Also checks the guarantees on 1,000,000
// generated inputs.

import ArgumentParser
import BenchReport
import CEL
import Foundation
import RiskPolicy

/// Goals, a second and core.
enum Goal {
    /// Answers, with a trace or without. At this rate the policy takes a fortieth of a decision
    /// over HTTP (DecisionBench).
    static let decisions = 200_000.0
    /// Look-ups in a list of a million ranges.
    static let lookups = 1_000_000.0
}

struct Options: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "PolicyBench",
        abstract: "Measure decisions of a policy on one core, beside the default policy by hand.")

    @Argument(
        help: ArgumentHelp("The policy; the default one without it.", valueName: "policy.yaml"))
    var policy: String?
    @Flag(help: "End with status 1 if a goal is missed by more than the noise.") var check = false
}

let options = Options.parseOrExit()
let distinctInputs = 10_240
let rounds = 5

func fail(_ message: String) -> Never {
    FileHandle.standardError.write(Data((message + "\n").utf8))
    exit(1)
}

/// Seconds that this process has used a processor. Other work on the machine does not count.
func processorSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Several rounds, in operations a second of processor time.
func rate(_ name: String, passes: Int, _ body: () -> Int) -> [Double] {
    var rates: [Double] = []
    var sum = 0
    for _ in 0..<rounds {
        let start = processorSeconds()
        for _ in 0..<passes { sum &+= body() }
        let seconds = processorSeconds() - start
        rates.append(Double(passes * distinctInputs) / seconds)
    }
    let best = rates.max() ?? 0
    let padded = name + String(repeating: " ", count: max(0, 34 - name.count))
    print("\(padded) \(Int(best)) /s   (\(Int(1e9 / best)) ns; check \(sum))")
    return rates
}

let path =
    options.policy
    ?? URL(filePath: #filePath).deletingLastPathComponent().appending(
        path: "../../policy/rules/default/policy.yaml"
    ).standardized
    .path
guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
    fail("\(path): cannot be read")
}
let policy: Policy
do {
    policy = try PolicyLoader.load(text, file: path)
} catch {
    fail("\(error)")
}
guard let now = CELTimestamp(seconds: 1_790_000_000) else { fail("no time") }

// A status policy decides for one event.
let events = PolicyEvent.allCases.filter { event in
    policy.rules.contains { $0.events.contains(event) }
}
var generator = InputGenerator(policy: policy, seed: 42, now: now)
let inputs = (0..<distinctInputs).map { number in
    var input = generator.next(event: events[number % events.count])
    input.isHistoryUnavailable = false
    return input
}
// Only the default policy also exists written by hand.
let isDefault = options.policy == nil
let signalsByHand = isDefault ? inputs.map { HandWrittenSignals(policy, $0) } : []

// Both must give the same answers, or the comparison is useless.
let allowed = inputs.count { policy.decide($0).decision == .allow }
for (input, signals) in zip(inputs, signalsByHand) {
    let answer = policy.answer(policy.decide(input))
    if let difference = decideByHand(signals).difference(from: answer, of: policy) {
        fail("the hand-written policy differs: \(difference)")
    }
}
let distinct = Set(
    inputs.map { input in
        policy.signals.indices.map { policy.value(slot: $0, of: input).text }.joined(separator: "|")
    }
).count
print(
    "\(distinct) distinct inputs, all events equally, \(allowed) allowed; processor time of one core, best of \(rounds) rounds\n"
)
guard !isDefault || distinct >= 10_000 else { fail("too few distinct inputs") }

let compact = rate("decide", passes: 20) {
    var sum = 0
    for input in inputs { sum &+= Int(policy.decide(input).challenges) }
    return sum
}
// A full answer: decision, every challenge, every reason code, waived, missing and errors, each
// read.
let full = rate("decide, every part of the answer", passes: 20) {
    var sum = 0
    for input in inputs {
        let result = policy.decide(input)
        if result.decision == .allow { sum &+= 1 }
        for code in result.reasons { sum &+= policy.reasonCodes[code].utf8.count }
        for position in 0..<policy.challenges.count
        where result.challenges >> UInt8(position) & 1 == 1 {
            sum &+= policy.challenges[position].kind.utf8.count
        }
        sum &+=
            result.waived.count &+ result.missing.count &+ result.errors.count
            &+ (result.isDegraded ? 1 : 0)
    }
    return sum
}
let traced = rate("decide with trace", passes: 10) {
    var sum = 0
    for input in inputs {
        let trace = policy.trace(input)
        for step in trace.rules where step.outcome == .matched { sum &+= step.rule }
    }
    return sum
}
let words = rate("decide, answer as arrays of strings", passes: 5) {
    var sum = 0
    for input in inputs { sum &+= policy.answer(policy.decide(input)).reasons.count }
    return sum
}
if isDefault {
    let hand = rate("the same policy by hand", passes: 50) {
        var sum = 0
        for signals in signalsByHand {
            let answer = decideByHand(signals)
            sum &+=
                Int(answer.challenges) &+ Int(answer.reasons.rawValue & 1)
                &+ answer.missing.nonzeroBitCount
                &+ answer.waived.nonzeroBitCount
        }
        return sum
    }
    for (name, other) in [
        ("decide", compact), ("with trace", traced), ("answer as arrays of strings", words),
    ] {
        let share = zip(other, hand).map { $0 / $1 }.median
        print(
            "\(name) / by hand".padding(toLength: 44, withPad: " ", startingAt: 0)
                + String(format: "%.3f", share))
    }
}

// A live list of a million ranges, half of them IPv6: made, changed, looked up.
struct AddressGenerator {
    private var state: UInt64 = 7

    private mutating func part(_ bound: UInt64, _ radix: Int) -> String {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return String((state >> 33) % bound, radix: radix)
    }

    mutating func next(_ number: Int) -> String {
        guard number % 2 == 0 else {
            return "2001:\(part(65_536, 16)):\(part(65_536, 16)):\(part(65_536, 16))::"
        }
        return "\(part(224, 10)).\(part(256, 10)).\(part(256, 10)).\(part(256, 10))"
    }
}
var networks = AddressGenerator()
let texts = (0..<1_000_000).map {
    networks.next($0) + ($0 % 2 == 0 ? "/\(24 + $0 % 9)" : "/\(48 + $0 % 17)")
}
let before = residentKiB()
var ranges = LiveListEntries(.range)
let making = ContinuousClock().measure { ranges = LiveListEntries(.range, texts) }
let changing = ContinuousClock().measure {
    ranges.change(adding: ["192.0.2.0/24"], removing: [texts[0]])
}
print(
    "a live list of \(ranges.count) ranges: made in \(making), \((residentKiB() - before) / 1024) MiB; changed in \(changing)"
)

/// Memory of this process.
func residentKiB() -> Int {
    let lines =
        (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8))?.split(separator: "\n")
        ?? []
    return lines.first { $0.hasPrefix("VmRSS:") }.flatMap {
        Int($0.split(separator: " ").dropLast().last ?? "")
    } ?? 0
}
let addresses = (0..<distinctInputs).map { networks.next($0) }
let lookups = rate("look-up in a list of a million ranges", passes: 20) {
    var sum = 0
    for address in addresses where ranges.contains(address) { sum &+= 1 }
    return sum
}

// The guarantees, on a million inputs of another seed.
var million = InputGenerator(policy: policy, seed: 2026, now: now)
var overridden = 0
for number in 0..<1_000_000 {
    let result = policy.decide(million.next(event: events[number % events.count]))
    if result.overridingGuarantee >= 0 { overridden += 1 }
    if (result.decision == .allow) != (result.challenges == 0) {
        fail("a decision without its challenges")
    }
}
print("\nguarantees: 1000000 inputs, \(overridden) broken\n")

guard overridden == 0 else { fail("a guarantee is broken") }

var report = BenchReport()
for (name, rates) in [("answers", full), ("traces", traced), ("lookups", lookups)] {
    report.add(BenchResult("policy.\(name)", rates.median, "a second"))
}
report.goal("policy: full answers a second on one core", full, Goal.decisions, atMost: false)
report.goal("policy: traces a second on one core", traced, Goal.decisions, atMost: false)
report.goal(
    "policy: look-ups a second in a million ranges on one core", lookups, Goal.lookups,
    atMost: false)
// The goals are those of the default policy.
if isDefault { try report.write() }
exit(options.check && !report.missed.isEmpty ? 1 : 0)
