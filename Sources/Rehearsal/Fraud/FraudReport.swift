// The results of a policy: how many attacks had to pass a check, and how many people.

import Decisions

/// Counts for one kind of people or one kind of attack.
package struct FraudCount: Sendable, Equatable {
    /// Requests of one event.
    package struct Asked: Sendable, Equatable {
        package var questions = 0
        package var asked = 0

        mutating func add(isAsked: Bool) {
            questions += 1
            if isAsked { asked += 1 }
        }

        /// A share of 1; nil if there were none.
        package var share: Double? { questions == 0 ? nil : Double(asked) / Double(questions) }
    }

    package var signUps = Asked()
    package var signIns = Asked()
    /// Sensitive actions; for an attack, including those that an earlier check stopped.
    package var actions = Asked()
    /// Sign-ups from the twentieth on.
    package var laterSignUps = Asked()
    /// The ordinal of the first sign-up that had to pass a check.
    package var firstAsked: Int?
    /// Cost of all accounts, with the weakest check that each must pass, in hundredths of a US
    /// cent.
    var cost = 0

    /// Cost of an account in US cents; nil if no one signed up.
    package var centsForAccount: Double? {
        signUps.questions == 0 ? nil : Double(cost) / Double(signUps.questions) / 100
    }
}

/// The end of a request.
enum QuestionEnd {
    case allowed
    case asked(World.Answer)
    /// An attacker did not pass an earlier check, and does not return.
    case stopped
}

/// The result tables of a run.
package struct FraudReport: Sendable {
    package private(set) var counts: [Kind: FraudCount] = [:]
    /// Attacks against people, for all their sign-ups.
    package private(set) var signUps = ROC()
    /// For all actions of both.
    package private(set) var everything = ROC()

    mutating func add(_ kind: Kind, _ what: Step.What, _ end: QuestionEnd) {
        var count = counts[kind] ?? FraudCount()
        defer { counts[kind] = count }
        guard case .attack(let attack) = kind else {
            return note(&count, what, end, price: 0, isFraud: false)
        }
        note(&count, what, end, price: attack.price, isFraud: true)
    }

    private mutating func note(
        _ count: inout FraudCount, _ what: Step.What, _ end: QuestionEnd, price: Int, isFraud: Bool
    ) {
        let isAsked: Bool
        var score = 0
        switch end {
        case .allowed: isAsked = false
        case .stopped: return count.actions.add(isAsked: true)
        case .asked(let answer):
            isAsked = true
            score = answer.score
            if what == .signUp { count.cost += answer.challenges.map(CheckPrice.price).min() ?? 0 }
        }
        everything.add(score, isFraud: isFraud)
        switch what {
        case .delete: break
        case .signIn: count.signIns.add(isAsked: isAsked)
        case .sensitive: count.actions.add(isAsked: isAsked)
        case .signUp:
            count.cost += price
            count.signUps.add(isAsked: isAsked)
            signUps.add(score, isFraud: isFraud)
            if isAsked { count.firstAsked = count.firstAsked ?? count.signUps.questions }
            if count.signUps.questions >= 20 { count.laterSignUps.add(isAsked: isAsked) }
        }
    }

    /// All real people together.
    package var people: FraudCount {
        People.allCases.compactMap { counts[.real($0)] }.reduce(into: FraudCount()) { all, one in
            all.signUps.questions += one.signUps.questions
            all.signUps.asked += one.signUps.asked
            all.signIns.questions += one.signIns.questions
            all.signIns.asked += one.signIns.asked
            all.actions.questions += one.actions.questions
            all.actions.asked += one.actions.asked
        }
    }

    private static func share(_ asked: FraudCount.Asked) -> String {
        asked.questions == 0 ? "-" : Figures.percent(asked.share)
    }

    /// A row for each attack: its name, sign-ups with a check, those from the 20th on, the first
    /// one, sign-ins, actions, cents for an account.
    package var attackRows: [[String]] {
        Attack.allCases.compactMap { attack in
            counts[.attack(attack)].map { count in
                [
                    attack.rawValue, Self.share(count.signUps), Self.share(count.laterSignUps),
                    count.signUps.questions == 0
                        ? "-" : count.firstAsked.map { "no. \($0)" } ?? "never",
                    Self.share(count.signIns), Self.share(count.actions),
                    count.centsForAccount.map(Figures.decimal) ?? "-",
                ]
            }
        }
    }

    /// A row for each kind of people, and one for all: how many sign-ups, sign-ins and actions had
    /// to pass a check.
    package var peopleRows: [[String]] {
        let kinds = People.allCases.compactMap { people in
            counts[.real(people)].map { (people.rawValue, $0) }
        }
        return (kinds + [("all", people)]).map { name, count in
            [name, Self.share(count.signUps), Self.share(count.signIns), Self.share(count.actions)]
        }
    }

    package static let attackHeader = [
        "attack", "sign-ups asked", "from the 20th", "first asked", "sign-ins", "actions", "cents",
    ]
    package static let peopleHeader = ["real people", "sign-ups asked", "sign-ins", "actions"]

    /// Both tables.
    package var text: String {
        [Self.table(Self.attackHeader, attackRows), "", Self.table(Self.peopleHeader, peopleRows)]
            .joined(separator: "\n")
    }

    private static func table(_ header: [String], _ rows: [[String]]) -> String {
        let widths = header.indices.map { column in
            ([header] + rows).map { $0[column].count }.max() ?? 0
        }
        return ([header] + rows).map { row in
            let cells = row.enumerated().map { column, text in
                let room = String(repeating: " ", count: widths[column] - text.count)
                return column == 0 ? text + room : room + text
            }
            return cells.joined(separator: "  ")
        }.joined(separator: "\n")
    }
}
