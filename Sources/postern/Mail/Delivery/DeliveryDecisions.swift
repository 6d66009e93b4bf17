// postern delivery allow, hold and lift: decisions of an administrator about a team's mail to a
// provider.

import Accounts
import ArgumentParser
import RelayCore
import Support

extension DeliveryCommand {
    /// The team and the provider.
    struct Place: ParsableArguments {
        @Argument(help: "The team's identifier.")
        var team: String
        @Argument(help: "The provider, as postern delivery show names it.")
        var provider: ProviderFamily
    }

    /// The duration and the reason.
    struct Terms: ParsableArguments {
        @Option(
            help: ArgumentHelp(
                "How long: 7d, 12h, a date as in 2027-01-31, or never for until it is lifted.",
                valueName: "time"))
        var until: String
        @Option(help: ArgumentHelp("The reason, for the audit and for others.", valueName: "text"))
        var reason: String

        func validate() throws {
            guard AuditReason.isAllowed(reason) else {
                throw ValidationError("--reason: \(AuditReason.rule)")
            }
        }
    }

    fileprivate static func decide(
        _ decision: DeliveryDecision, _ place: Place, _ terms: Terms,
        _ installation: InstallationOptions
    ) throws {
        let now = PosternClock.now()
        let until = try ExpiryText.seconds(terms.until, now: now)
        if let until, until <= now { throw CommandError.usage("--until: it is in the past") }
        try installation.withStore { store in
            try store.deliveries.decide(
                decision, team: store.teams.team(place.team), provider: place.provider,
                until: until, reason: terms.reason, thisChange())
        }
        Swift.print(
            "Mail of \(place.team) to \(place.provider) is \(decision == .hold ? "held" : "open")\(until.map { " until \(timestamp($0))" } ?? " until postern delivery lift")."
        )
    }

    struct Allow: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Let a team's mail to a provider pass, whatever the figures say.",
            discussion:
                "For example when the team has repaired the cause, and the complaints of the last days still count."
        )

        @OptionGroup var place: Place
        @OptionGroup var terms: Terms
        @OptionGroup var installation: InstallationOptions

        func run() throws { try decide(.allow, place, terms, installation) }
    }

    struct Hold: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Hold a team's mail to a provider: its senders keep it (451).",
            discussion: "Senders give up after some days, and tell the team.")

        @OptionGroup var place: Place
        @OptionGroup var terms: Terms
        @OptionGroup var installation: InstallationOptions

        func run() throws { try decide(.hold, place, terms, installation) }
    }

    struct Lift: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "End a decision of allow or hold: the figures count again.")

        @OptionGroup var place: Place
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                try store.deliveries.lift(
                    team: store.teams.team(place.team), provider: place.provider, thisChange())
            }
            Swift.print("The figures decide about mail of \(place.team) to \(place.provider).")
        }
    }
}
