// Postfix's settings: the findings of the set-up plan as checks.

import Monitoring
import Support

/// The differences between the settings that the relay needs and those that Postfix has.
package struct PostfixFacts: Sendable {
    /// A setting that differs.
    package struct Difference: Sendable {
        /// `name`, or `service/type/name` in master.cf.
        package let name: String
        package let present: String
        package let needed: String
        package let reason: String

        package init(name: String, present: String, needed: String, reason: String) {
            self.name = name
            self.present = present
            self.needed = needed
            self.reason = reason
        }
    }

    /// The reason why Postfix's configuration could not be read; nil if it was read.
    package var trouble: String?
    package var directory = ""
    /// Whether Postfix runs; nil if that cannot be determined.
    package var isRunning: Bool?
    /// The host to which Postfix sends all mail; empty if it delivers directly.
    package var relayhost = ""
    package var differences: [Difference] = []
    /// Whether the header check that reduces Postfix's own Received is in place.
    package var hasHeaderCheck = true
    /// Ways by which mail bypasses the milter, in words.
    package var bypasses: [String] = []
    /// Messages in the queue for addresses at a relay domain; nil if the queue cannot be read.
    package var parked: Int?
    /// The reason why the queue cannot be read.
    package var queueTrouble: String?
    /// Set if Postfix's own user has no access to the milter's socket: the problem, and the setting
    /// that fixes it.
    package var ownerTrouble: Trouble?
    /// Other milters of Postfix's configuration that do not answer: the parameter, the milter, and
    /// the error.
    package var silentMilters: [(parameter: String, milter: String, trouble: String)] = []
    /// Conflicts between settings that only the operator can resolve.
    package var conflicts: [String] = []

    package init() {}
}

package enum PostfixChecks {
    /// The remedy for the problems that a plan can fix.
    private static func remedy(_ facts: PostfixFacts) -> Remedy {
        "run \(.applySettings, postfix: facts.directory), then \(.reloadPostfix, postfix: facts.directory)"
    }
    /// More settings than this are too many to change by hand.
    private static let manySettings = 10

    private static func notAttached(_ facts: PostfixFacts) -> Check {
        .broken(
            .postfix,
            "Postfix in \(facts.directory) is not set up for Postern: smtpd_milters does not name it, and \(facts.differences.count - 1) other "
                + "settings differ",
            remedy: "\(.showSettings, postfix: facts.directory) shows them; " + remedy(facts))
    }

    /// Without these settings an inbox could leave, or mail could pass without being rewritten.
    private static let leaking: Set<String> = [
        "non_smtpd_milters", "internal_mail_filter_classes", "smtpd_milters",
        "milter_default_action",
        "smtpd_discard_ehlo_keywords",
        "smtp_header_checks", "cleanup/unix/milter_macro_daemon_name",
    ]

    package static func judge(_ facts: PostfixFacts) -> [Check] {
        if let trouble = facts.trouble {
            return [
                .broken(
                    .postfix, "Postfix's settings cannot be read: \(trouble)",
                    remedy:
                        "name its configuration with --config-directory, or skip this part with --skip postfix"
                )
            ]
        }
        // Before the set-up every setting differs, so one check reports all of them.
        let isAttached =
            facts.differences.count <= manySettings
            || !facts.differences.contains { $0.name == "smtpd_milters" }
        var checks =
            !isAttached
            ? [notAttached(facts)]
            : facts.differences.map { difference in
                let present = difference.present.isEmpty ? "empty" : difference.present
                let leak =
                    leaking.contains(difference.name)
                    ? " (without it an inbox becomes visible)" : ""
                return Check.broken(
                    CheckKind.postfixSetting.of(difference.name),
                    "\(difference.name) is \(present), not \(difference.needed): \(difference.reason)\(leak)",
                    remedy: remedy(facts))
            }
        if !facts.hasHeaderCheck, isAttached {
            checks.append(
                .broken(
                    .postfixHeaderCheck,
                    "the header check is missing or for another host name: replies would show the user's host and IP address",
                    remedy: remedy(facts)))
        }
        checks += facts.bypasses.map {
            .broken(
                .postfixBypass, $0,
                remedy: "add Postern's milter to that service in master.cf, or remove the service")
        }
        checks += facts.silentMilters.map {
            .broken(
                .postfixFilter,
                "\($0.parameter) has \($0.milter), which does not answer (\($0.trouble)): Postfix defers the mail that it should see",
                remedy: "start it, or remove it from \($0.parameter)")
        }
        checks += facts.conflicts.map {
            .broken(
                .postfixConflict, $0,
                remedy: "decide which of the two you want, and change the other")
        }
        if let trouble = facts.ownerTrouble {
            checks.insert(.broken(.postfixOwner, trouble.sentence, remedy: trouble.remedy), at: 0)
        }
        if let trouble = facts.queueTrouble, facts.isRunning != false {
            checks.append(
                .warning(
                    .postfixQueue,
                    "Postfix's queue cannot be checked, so mail that was not rewritten goes unnoticed: \(trouble)",
                    remedy: StatusReport.queueRemedy))
        }
        if let parked = facts.parked, parked > 0 {
            checks.append(
                .broken(
                    .postfixQueue,
                    "\(Count.text(parked, "message")) in the queue \(parked == 1 ? "is" : "are") for addresses at a relay domain, where nothing is "
                        + "delivered: no milter saw \(parked == 1 ? "it, or it was" : "them, or they were") not rewritten",
                    remedy:
                        "\(.listQueue, postfix: facts.directory) shows them; fix what is named here, then \(.sendQueue, postfix: facts.directory) sends them through the milter"
                ))
        }
        if facts.isRunning == false {
            // First, because the settings do not matter while Postfix does not run.
            checks.insert(
                .broken(
                    .postfixService,
                    "Postfix (\(facts.directory)) is not running: no mail comes in and none leaves",
                    remedy:
                        "start it (\(.startPostfix, postfix: facts.directory), or systemctl start postfix); its log says what prevents it from running"
                ),
                at: 0)
        }
        if checks.isEmpty {
            checks.append(.ok(.postfix, "Postfix in \(facts.directory) is set up for the relay"))
        }
        return checks
    }
}
