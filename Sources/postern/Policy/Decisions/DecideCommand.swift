// postern decide: requests a decision from the command line, as POST /v1/decisions does.

import ArgumentParser
import CEL
import Decisions
import Foundation
import Logging
import Monitoring
import PosternConfiguration
import RiskPolicy
import SignIn

struct DecideCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decide",
        abstract: "Request a decision about a user, as an app's backend does.",
        discussion: """
            The request counts as a request of the team: it is logged, it consumes its nonce, and the first request for an \
            account is a sign-up. To try things out, use postern sandbox.

            Exit status 0 for a decision, whether it is allow or require_verification.
            """)

    @Argument(help: "The team's identifier.")
    var team: String
    @Option(
        name: .customLong("app"),
        help: ArgumentHelp("The app that the request is from.", valueName: "client-id"))
    var clientID: String
    @Option(help: "sign_up, sign_in, upgrade or sensitive_action.")
    var event: String
    @Option(
        help: ArgumentHelp(
            "A file with the identity token; - for standard input.", valueName: "file"),
        transform: filePath)
    var identityToken: String?
    @Option(help: "The nonce of the token, as the app created it.")
    var nonce: String?
    @Option(help: "The account's sub, if it is known.")
    var sub: String?
    @Option(help: "The app's own identifier of the account, for an upgrade.")
    var appAccount: String?
    @Option(help: ArgumentHelp("The device, as /v1/attestations returned it.", valueName: "dv_…"))
    var device: String?
    @Option(
        help: ArgumentHelp(
            "A context signal of the policy, read by its declared type; a list has commas or is JSON; may be repeated.",
            valueName: "name=value"))
    var context: [String] = []
    @Flag(
        help: """
            Refuse context that the policy does not declare, or whose value it cannot use. Without it, as for a backend, the \
            first is left out, and every rule that reads the second requires verification.
            """)
    var strict = false
    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        guard let event = PolicyEvent(rawValue: event) else {
            throw CommandError.usage(
                "--event must be one of \(PolicyEvent.allCases.map(\.rawValue).joined(separator: ", "))"
            )
        }
        var question = DecisionRequest(
            event: event, clientID: clientID, identityToken: try token(), nonce: nonce, sub: sub,
            appAccount: appAccount,
            device: device, context: try context.map(Self.contextValue))
        question.isContextTyped = true
        for (place, value) in question.context.enumerated()
        where question.context[..<place].contains(where: { $0.name.hasSameOctets(as: value.name) })
        {
            throw CommandError.usage("--context \(value.name) is given twice")
        }
        let opened = try installation.open()
        defer { try? opened.close() }
        let asking = try opened.store.teams.team(team)
        var logger = LogOutput.logger(opened.configuration.log)
        logger.logLevel = max(logger.logLevel, .error)
        let policies = ActivePolicies(
            opened.store.policies, host: nil, now: PosternClock.now(), logger: logger)
        let trust = IssuerTrust(opened.store, now: PosternClock.now, logger: logger)
        let own = opened.configuration.provider.issuer.map {
            ($0, IdentitySigner(opened.store.identityKeys, now: PosternClock.now, logger: logger))
        }
        let lists = ListsInForce(opened.store.liveLists, now: PosternClock.now(), logger: logger)
        let parts = DecisionParts(
            store: opened.store, policies: policies, lists: lists, trust: trust, own: own,
            hasPage: false,
            executor: InlineExecutor(),
            refusesOddContext: strict, now: PosternClock.now, logger: logger)
        let reply: DecisionReply
        do {
            reply = try await parts.service.decide(
                question, for: Requester(id: asking.id, number: asking.number))
        } catch {
            try? parts.end()
            await trust.stop()
            throw Self.commandError(error)
        }
        try parts.end()
        await trust.stop()
        if output.json { return print(reply.body) }
        try Self.show(reply.body)
    }

    private func token() throws -> String? {
        guard let identityToken else { return nil }
        let text =
            identityToken == "-"
            ? readLine() ?? "" : try InputFile.text(identityToken, maximum: 65_536)
        return text.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// `amount=12` or `ip_prefix=192.0.2`; the value is read by the type that the policy declares.
    static func contextValue(_ text: String) throws -> (name: String, value: CELValue) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(
            String.init)
        guard parts.count == 2, !parts[0].isEmpty else {
            throw CommandError.usage("--context: \"\(text)\" is not NAME=VALUE")
        }
        guard !parts[0].utf8.starts(with: "context.".utf8) else {
            throw CommandError.usage(
                "--context \(parts[0]): leave context. out, as apps do: the name is what is behind it"
            )
        }
        return (parts[0], .string(parts[1]))
    }

    private static func commandError(_ error: any Error) -> any Error {
        guard let error = error as? DecisionError else { return error }
        switch error {
        case .unavailable, .busy:
            return CommandError(status: EX_TEMPFAIL, message: error.description)
        case .notFound: return CommandError(status: EX_NOINPUT, message: error.description)
        case .invalid, .conflict: return CommandError.data(error.description)
        }
    }

    /// Prints the response for people.
    private static func show(_ body: String) throws {
        guard let answer = try JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]
        else { return print(body) }
        func text(_ name: String) -> String? { answer[name].map { "\($0)" } }
        let challenges = (answer["challenges"] as? [String] ?? []).joined(separator: " ")
        let reasons = (answer["reasons"] as? [[String: String]] ?? []).compactMap { $0["code"] }
            .joined(separator: " ")
        var lines = [
            ("answer", text("decision") ?? "-"), ("event", text("event") ?? "-"),
            ("challenges", challenges.isEmpty ? "-" : challenges),
            ("reasons", reasons.isEmpty ? "-" : reasons),
            ("first status", text("real_user_status") ?? "-"),
            ("credential", text("credential_state") ?? "-"),
        ]
        if let result = text("upgrade_result") { lines.append(("upgrade", result)) }
        for (trouble, meaning) in [
            (ContextTrouble.ignored, "not declared by the policy"), (.invalid, "cannot be used"),
        ] {
            guard let names = answer[trouble.rawValue] as? [String] else { continue }
            lines.append(
                (
                    trouble == .ignored ? "ignored" : "invalid",
                    "context \(names.joined(separator: " ")): \(meaning)"
                ))
        }
        if answer["degraded"] as? Bool == true {
            lines.append(("degraded", "yes: history could not be read"))
        }
        lines += [
            ("decision", text("decision_id") ?? "-"), ("valid until", text("expires_at") ?? "-"),
        ]
        Properties(lines: lines).print()
    }
}
