// The store's data about decisions: the log, outcomes, the history on which decisions are based,
// and the policies in force.

import Accounts

extension Store {
    /// The facts about a user at the time of a request.
    package var history: HistoryRepository { HistoryRepository(database: database, sealer: sealer) }
    /// The log.
    package var decisions: DecisionRepository { DecisionRepository(database: database) }
    /// Writes of decisions: log and history together.
    package var decisionWrites: DecisionWriteRepository {
        DecisionWriteRepository(database: database)
    }
    /// Outcomes of the checks that decisions required.
    package var checks: CheckRepository { CheckRepository(database: database) }
    /// Checks that the page carries out.
    package var hostedChecks: HostedCheckRepository {
        HostedCheckRepository(database: database, sealer: sealer, secrets: secrets)
    }
    /// Decisions for people to review, with their notes.
    package var reviews: ReviewRepository { ReviewRepository(database: database) }
    /// Stored answers, repeated when a request is repeated.
    package var idempotency: IdempotencyRepository { IdempotencyRepository(database: database) }
    /// Counts of policies.
    package var velocity: VelocityRepository { VelocityRepository(database: database) }
    /// Sign-up rates of apps.
    package var appRates: AppRateRepository { AppRateRepository(database: database) }
    /// Devices that attested an app.
    package var devices: DeviceRepository {
        DeviceRepository(database: database, secrets: secrets, sealer: sealer, marks: decisionMarks)
    }
    /// The app ids that devices may attest.
    package var attestedApps: AttestedAppRepository { AttestedAppRepository(database: database) }
    /// Lists whose changes take effect in policies at once.
    package var liveLists: LiveListRepository {
        LiveListRepository(database: database, marks: decisionMarks)
    }
    package var policies: PolicyRepository { PolicyRepository(database: database) }
}

extension ListingStore {
    /// The log, for reports.
    package var decisions: DecisionRepository { DecisionRepository(database: database) }
    /// Policies, for reports: those in force are read from the store.
    package var policies: PolicyRepository { PolicyRepository(database: database) }
}
