// The limit by consequence: whether mail of a team to one provider is open, slowed or held. Pure.

/// How mail of one team to one provider is handled.
package enum DeliveryStanding: String, Sendable, Hashable, CaseIterable {
    case open
    /// Some messages of an hour pass, the rest is deferred.
    case slowed
    /// All messages are deferred.
    case held
}

/// What a limit is for.
package enum DeliveryCause: String, Sendable, Hashable, CaseIterable {
    case complaints
    case refusals
}

/// The figures of one team at one provider within a window of days. An account is counted once a
/// day, so that no provider's repetitions weigh more than others.
package struct DeliveryEvidence: Sendable, Hashable {
    /// Messages that Postern forwarded.
    package var messages: Int
    /// Complaints of accounts, once a day each, and the different users behind them.
    package var complaints: Int
    package var complainingUsers: Int
    /// Messages that the provider refused for the sender's reputation, in the same way.
    package var refusals: Int
    package var refusedUsers: Int

    package init(
        messages: Int = 0, complaints: Int = 0, complainingUsers: Int = 0, refusals: Int = 0,
        refusedUsers: Int = 0
    ) {
        self.messages = messages
        self.complaints = complaints
        self.complainingUsers = complainingUsers
        self.refusals = refusals
        self.refusedUsers = refusedUsers
    }

    /// The number that is compared with the messages. A complaint weighs by its user: one who
    /// complains every day weighs as much as one who complains once, so that few users cannot stop
    /// a team. Refusals come from the provider, and each day of them counts.
    fileprivate func weight(_ cause: DeliveryCause) -> Int {
        switch cause {
        case .complaints: complainingUsers
        case .refusals: refusals
        }
    }

    /// The figures that are shown for a cause.
    package func count(_ cause: DeliveryCause) -> (events: Int, users: Int) {
        switch cause {
        case .complaints: (complaints, complainingUsers)
        case .refusals: (refusals, refusedUsers)
        }
    }
}

/// The thresholds.
package struct DeliveryRules: Sendable, Hashable {
    /// The window that decides, in days, today included.
    package static let days: Int64 = 7
    /// The time in seconds for which a standing stays at least, so that figures near a threshold do
    /// not change it with each message.
    package static let settling: Int64 = 3_600

    /// Different users that are needed for any limit.
    package var users = 10
    /// Messages within the window that are needed for any limit.
    package var messages = 1_000
    /// Users who complained, and refusals, for each thousand messages, from which mail is slowed;
    /// nil: never.
    package var complaintsPerThousand: Int? = 3
    package var refusalsPerThousand: Int? = 50
    /// Mail is held from this many times the thresholds.
    package var holdFactor = 3
    /// Messages an hour of a slowed team to the provider.
    package var slowedPerHour = 100

    package init() {}

    private func threshold(_ cause: DeliveryCause) -> Int? {
        switch cause {
        case .complaints: complaintsPerThousand
        case .refusals: refusalsPerThousand
        }
    }

    /// The first cause for which the figures reach `factor` times the threshold.
    private func reached(
        _ evidence: DeliveryEvidence, times factor: Int, among messages: Int
    ) -> DeliveryCause? {
        DeliveryCause.allCases.first { cause in
            guard let threshold = threshold(cause) else { return false }
            return evidence.count(cause).users >= users && evidence.messages >= messages
                && evidence.weight(cause) * 1_000 >= threshold * factor * evidence.messages
        }
    }

    /// Whether no cause remains: too few users, or half the threshold. Messages that are missing
    /// because they are held do not count in favour of the team.
    private func isRecovered(_ evidence: DeliveryEvidence) -> Bool {
        DeliveryCause.allCases.allSatisfy { cause in
            guard let threshold = threshold(cause) else { return true }
            return evidence.count(cause).users < users
                || evidence.weight(cause) * 2_000 < threshold * evidence.messages
        }
    }

    /// The standing after a review.
    /// - Parameters:
    ///   - standing: the present one.
    ///   - since: when it began, in seconds since 1970.
    ///   - week: the figures of the whole window.
    ///   - latest: the figures since the beginning of yesterday (UTC).
    ///   - now: seconds since 1970.
    /// - Returns: the new standing with its cause, if it changes; a cause is given unless it is
    /// open.
    package func review(
        _ standing: DeliveryStanding, since: Int64, week: DeliveryEvidence,
        latest: DeliveryEvidence, now: Int64
    ) -> (standing: DeliveryStanding, cause: DeliveryCause?)? {
        guard standing == .open || now - since >= Self.settling else { return nil }
        switch standing {
        case .open:
            return reached(week, times: 1, among: messages).map { (.slowed, $0) }
        case .slowed:
            if let cause = reached(week, times: holdFactor, among: messages) {
                return (.held, cause)
            }
            // It goes on although the mail is slow. The window begins after the slowing.
            if since <= (now / 86_400 - 1) * 86_400,
                let cause = reached(latest, times: 1, among: 1)
            {
                return (.held, cause)
            }
            return isRecovered(week) ? (.open, nil) : nil
        case .held:
            if isRecovered(week) { return (.open, nil) }
            // A few messages show whether the cause is gone.
            guard now - since >= 86_400, reached(week, times: holdFactor, among: 1) == nil,
                let cause = reached(week, times: 1, among: 1)
            else { return nil }
            return (.slowed, cause)
        }
    }
}

/// Whether a forward may go to a provider now.
package enum DeliveryAdmission: Sendable, Hashable {
    case open
    /// The messages of this hour are used up.
    case slowed
    case held
}
