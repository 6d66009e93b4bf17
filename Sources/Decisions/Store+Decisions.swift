// What the store knows of decisions: their log and outcomes, the history they are made of, and the policies in force.

import Accounts

extension Store {
    /// What was known of a user when a question was asked.
    package var history: HistoryRepository { HistoryRepository(database: database, sealer: sealer) }
    /// The log.
    package var decisions: DecisionRepository { DecisionRepository(database: database) }
    /// What a decision writes, log and history together.
    package var decisionWrites: DecisionWriteRepository { DecisionWriteRepository(database: database) }
    /// How checks ended that a decision asked for.
    package var checks: CheckRepository { CheckRepository(database: database) }
    /// What people look at, and what they say of it.
    package var reviews: ReviewRepository { ReviewRepository(database: database) }
    /// Answers that are given again to who asks the same again.
    package var idempotency: IdempotencyRepository { IdempotencyRepository(database: database) }
    /// What policies count.
    package var velocity: VelocityRepository { VelocityRepository(database: database) }
    /// How many sign up with an app.
    package var appRates: AppRateRepository { AppRateRepository(database: database) }
    /// Devices that attested an app.
    package var devices: DeviceRepository {
        DeviceRepository(database: database, secrets: secrets, sealer: sealer, marks: decisionMarks)
    }
    /// What devices may attest.
    package var attestedApps: AttestedAppRepository { AttestedAppRepository(database: database) }
    /// Lists that policies read while they change.
    package var liveLists: LiveListRepository { LiveListRepository(database: database, marks: decisionMarks) }
    package var policies: PolicyRepository { PolicyRepository(database: database) }
}
