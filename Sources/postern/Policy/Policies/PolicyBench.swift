// `postern policy bench`: runs a policy on a simulated population of people and attackers.

import Accounts
import Administration
import ArgumentParser
import Database
import Decisions
import Foundation
import Rehearsal
import RiskPolicy
import Support

struct PolicyBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Run a policy on a simulated population of people and attackers.",
        discussion: """
            Sends thirty days of sign-ups, sign-ins and sensitive actions to the HTTP API on a loopback port, with a separate \
            clock and store; nothing of the installation is changed. Prints how often each attack and how often people get a \
            check, and the cost of an account for an attacker. The population is a model: use it to compare policies.

            Attackers do not pass checks; people do. A policy that declares context.network, as a string of 24 octets or \
            more, gets the network of each request. For a status policy, the effect on the default risk policy is shown.
            """)

    @Argument(help: ReferredPolicy.help, completion: .directory, transform: filePath) var policy:
        String
    @Option(
        help: ArgumentHelp(
            "A status policy to use with it. By default the built-in one.", valueName: "folder"),
        transform: filePath)
    var status: String?
    @Option(help: "The number of real people.") var people = 1_000
    @Option(help: "The number of accounts of each farm.") var farm = 200
    @Option(help: "The number of people who are imported on the first day, without a known past.")
    var imported = 200
    @Option(help: "Another number gives another population of the same kind.") var seed: UInt64 = 1
    @Option(
        help: ArgumentHelp("Also write a self-contained page with plots.", valueName: "file"),
        completion: .file(),
        transform: filePath)
    var html: String?
    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard (1...100_000).contains(people), (1...10_000).contains(farm),
            (0...100_000).contains(imported)
        else {
            throw ValidationError(
                "--people must be 1 to 100000, --imported 0 to 100000, and --farm 1 to 10000.")
        }
    }

    func run() async throws {
        try installation.refuse(output: html)
        let (risk, status) = try policies()
        var parameters = PopulationParameters()
        (parameters.people, parameters.farm, parameters.seed) = (people, farm, seed)
        parameters.imported = imported
        let leftovers = Leftovers(
            folder: FileManager.default.temporaryDirectory.path, stem: FraudBench.folderStem)
        leftovers.removeAbandoned()
        let watch = leftovers.removingIfInterrupted()
        defer { watch.end() }
        let (report, questions) = try await FraudBench.run(risk.policy, status: status, parameters)
        let words =
            "\(Count.text(people, "person", "people")), farms of \(farm), \(Count.text(questions, "question")), seed \(seed)"
        if let html {
            try OwnedFile.write(
                FraudPage.html(report, label: risk.label, sub: words).utf8, to: html)
        }
        if output.json {
            return try printJSON(Self.members(report, risk.label, questions: questions))
        }
        print("\(risk.label): \(words)\n\n\(report.text)")
        if let html { print("\nWrote \(html)") }
    }

    /// The risk policy, and the status policy if it is not the built-in one.
    private func policies() throws -> (
        risk: (policy: LoadedPolicy, label: String), status: StoredPolicy?
    ) {
        let referred = try refer(policy)
        let other = try status.map(refer)
        if let other, other.policy.kind == .verification || referred.policy.kind != .verification {
            throw CommandError.usage("--status: give a status policy, beside a risk policy")
        }
        guard referred.policy.kind == .verification else {
            let standard = try LoadedPolicy(.builtIn)
            return (
                (standard, "\(standard.name) \(standard.version) with \(referred.label)"),
                referred.stored
            )
        }
        let label = other.map { "\(referred.label) with \($0.label)" } ?? referred.label
        return ((try LoadedPolicy(referred.stored), label), other?.stored)
    }

    private func refer(_ text: String) throws -> ReferredPolicy {
        if text == PolicyKind.statusName, !ReferredPolicy.isFolder(text) {
            return try ReferredPolicy(.builtInStatus)
        }
        return try ReferredPolicy(text, in: installation)
    }

    private static func members(_ report: FraudReport, _ label: String, questions: Int) -> Members {
        func asked(_ asked: FraudCount.Asked) -> Members {
            ["questions": asked.questions, "asked": asked.asked]
        }
        let attacks = Attack.allCases.compactMap { attack in
            report.counts[.attack(attack)].map { count -> Members in
                [
                    "attack": attack.rawValue, "sign_ups": asked(count.signUps),
                    "from_20th": asked(count.laterSignUps),
                    "first_asked": count.firstAsked, "sign_ins": asked(count.signIns),
                    "actions": asked(count.actions),
                    "cents_for_account": count.centsForAccount,
                ]
            }
        }
        func people(_ name: String, _ count: FraudCount) -> Members {
            [
                "people": name, "sign_ups": asked(count.signUps), "sign_ins": asked(count.signIns),
                "actions": asked(count.actions),
            ]
        }
        let kinds = People.allCases.compactMap { kind in
            report.counts[.real(kind)].map { people(kind.rawValue, $0) }
        }
        return [
            "policy": label, "questions": questions, "attacks": attacks,
            "people": kinds + [people("all", report.people)],
            "area_sign_ups": report.signUps.area, "area_all": report.everything.area,
        ]
    }
}
