// The actors of thirty days and their steps: real people and attackers, from parameters and a seed.

/// A kind of real people.
package enum People: String, Sendable, CaseIterable {
    /// One to four accounts over the years, one at this app.
    case single = "people"
    /// Several behind one home network.
    case family = "families"
    /// Many behind one network.
    case campus = "campus"
    /// Behind the networks of a carrier.
    case carrier = "carrier NAT"
    /// With an inbox at iCloud, duck.com or SimpleLogin.
    case relay = "relay inboxes"
    /// They are inactive for half a year, and then return.
    case returning = "returning"
    /// They delete all their data, and return.
    case leaver = "delete, come back"
    /// Imported from another system on the first day. The time of their last visit is unknown.
    case imported = "imported"
}

/// A kind of attack.
package enum Attack: String, Sendable, CaseIterable {
    case disposable = "farm, disposable mail"
    case tags = "farm, plus tags"
    case ownDomain = "farm, own domain"
    case drip = "slow drip, proxies"
    case bought = "bought aged accounts"
    case takeover = "account take-over"
    case promo = "promo, relay inboxes"

    /// The cost of an inbox and a network for one account, in hundredths of a US cent:
    /// assumed, like `CheckPrice`.
    var price: Int {
        switch self {
        case .disposable, .tags: 0
        case .ownDomain: 5
        case .drip: 700
        case .bought: 200
        case .takeover: 0
        case .promo: 20
        }
    }
}

/// The cost of passing a check, in hundredths of a US cent: a solving service; a script that reads
/// the inbox; a person.
enum CheckPrice {
    static func price(_ challenge: String) -> Int {
        switch challenge {
        case "human_check": 20
        case "email_code": 10
        default: 500
        }
    }
}

package enum Kind: Hashable, Sendable {
    case real(People)
    case attack(Attack)

    package var isReal: Bool { if case .real = self { true } else { false } }
}

/// A person or attacker with an account.
struct Actor {
    let kind: Kind
    let inbox: String
    /// When they joined the installation, in seconds; negative before the thirty days.
    let since: Int64
}

/// One action of an actor.
struct Step {
    enum What { case signUp, signIn, sensitive, delete }
    /// Seconds since the thirty days began.
    let at: Int64
    let actor: Int
    let what: What
    let network: String
}

/// The sizes of the population.
package struct PopulationParameters: Sendable {
    /// Real people.
    package var people = 1_000
    /// Accounts of each farm; a sign-up a minute, except for the drip.
    package var farm = 200
    /// Number of bought accounts, and of accounts taken over.
    package var bought = 60
    /// Promotion hunters, with ten accounts each.
    package var hunters = 10
    /// People who are imported on the first day.
    package var imported = 200
    package var seed: UInt64 = 1

    package init() {}
}

struct Population {
    static let days: Int64 = 30
    private static let day: Int64 = 86_400

    private(set) var actors: [Actor] = []
    private(set) var steps: [Step] = []
    private var state: UInt64

    init(_ parameters: PopulationParameters) {
        state = parameters.seed &* 0x9E37_79B9_7F4A_7C15 | 1
        addPeople(parameters.people)
        addFarms(parameters.farm)
        addOthers(parameters)
        addImported(parameters.imported)
        steps.sort { ($0.at, $0.actor) < ($1.at, $1.actor) }
    }

    private mutating func random(_ bound: Int) -> Int {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return Int(state % UInt64(max(1, bound)))
    }

    private mutating func moment(_ from: Int64 = 0, _ days: Int64 = days) -> Int64 {
        from + Int64(random(Int(days * Self.day)))
    }

    private mutating func actor(_ kind: Kind, _ inbox: String, since: Int64 = 0) -> Int {
        actors.append(Actor(kind: kind, inbox: inbox, since: since))
        return actors.count - 1
    }

    // MARK: Real people

    private mutating func addPeople(_ count: Int) {
        for number in 0..<count {
            let share = random(100)
            let kind: People =
                switch share {
                case ..<40: .single
                case ..<55: .family
                case ..<65: .campus
                case ..<78: .carrier
                case ..<88: .relay
                case ..<97: .returning
                default: .leaver
                }
            let domain =
                kind == .relay
                ? ["icloud.com", "duck.com", "simplelogin.com"][random(3)]
                : random(10) < 8
                    ? ["gmail.com", "outlook.com", "yahoo.com", "gmx.de"][random(4)]
                    : "firm\(random(count / 8)).example"
            let network: String =
                switch kind {
                case .family: "home\(random(max(1, count / 30)))"
                case .campus: "campus"
                case .carrier: "carrier\(random(4))"
                default: "net\(number)"
                }
            live(kind, "real\(number)@\(domain)", network)
        }
    }

    private mutating func live(_ kind: People, _ inbox: String, _ network: String) {
        let knownSince = -Int64(random(400)) * Self.day
        let person = actor(.real(kind), inbox, since: knownSince)
        let signUp = kind == .returning ? -180 * Self.day : moment()
        steps.append(Step(at: signUp, actor: person, what: .signUp, network: network))
        var at = kind == .returning ? moment() : signUp
        if kind == .returning {
            steps.append(Step(at: at, actor: person, what: .signIn, network: network))
        }
        while true {
            at += Int64(Self.day) / 2 + Int64(random(Int(6 * Self.day)))
            guard at < Self.days * Self.day else { break }
            if kind == .leaver, random(3) == 0 {
                steps.append(Step(at: at, actor: person, what: .delete, network: network))
                at += 3_600
                steps.append(Step(at: at, actor: person, what: .signUp, network: network))
                continue
            }
            steps.append(
                Step(
                    at: at, actor: person, what: random(20) == 0 ? .sensitive : .signIn,
                    network: network))
        }
    }

    private mutating func addImported(_ count: Int) {
        for number in 0..<count {
            let person = actor(
                .real(.imported), "brought\(number)@\(["gmail.com", "outlook.com"][random(2)])",
                since: 0)
            var at = moment()
            while at < Self.days * Self.day {
                let what: Step.What = random(20) == 0 ? .sensitive : .signIn
                steps.append(Step(at: at, actor: person, what: what, network: "brought\(number)"))
                at += Self.day / 2 + Int64(random(Int(6 * Self.day)))
            }
        }
    }

    // MARK: Attackers

    private mutating func addFarms(_ count: Int) {
        for (attack, days) in [
            (Attack.disposable, Int64(1)), (.tags, 1), (.ownDomain, 1), (.drip, 30),
        ] {
            let begin = moment(5 * Self.day, 10)
            for number in 0..<count {
                let inbox =
                    switch attack {
                    case .disposable: "f\(number)@mailinator.com"
                    case .tags: "farmer+\(number)@gmail.com"
                    case .ownDomain: "f\(number)@farm.example"
                    default: "\(attack)\(number)x@outlook.com"
                    }
                let at =
                    attack == .drip
                    ? Int64(number) * days * Self.day / Int64(count) : begin + Int64(number) * 60
                let network = attack == .drip ? "proxy\(number)" : "farm\(attack)\(number % 3)"
                let one = actor(.attack(attack), inbox, since: at)
                steps.append(Step(at: at, actor: one, what: .signUp, network: network))
            }
        }
    }

    private mutating func addOthers(_ parameters: PopulationParameters) {
        for number in 0..<parameters.bought {
            let bought = actor(.attack(.bought), "aged\(number)@gmail.com", since: -200 * Self.day)
            steps.append(Step(at: -120 * Self.day, actor: bought, what: .signUp, network: "seller"))
            steps.append(
                Step(at: moment(), actor: bought, what: .sensitive, network: "buyer\(number % 5)"))
            let victim = actor(.attack(.takeover), "victim\(number)@gmx.de", since: -300 * Self.day)
            steps.append(
                Step(at: -250 * Self.day, actor: victim, what: .signUp, network: "victim\(number)"))
            let taken = moment()
            steps.append(
                Step(at: taken, actor: victim, what: .signIn, network: "thief\(number % 3)"))
            steps.append(
                Step(
                    at: taken + 120, actor: victim, what: .sensitive, network: "thief\(number % 3)")
            )
        }
        for hunter in 0..<parameters.hunters {
            let begin = moment()
            for number in 0..<10 {
                let one = actor(.attack(.promo), "hunter\(hunter)-\(number)@duck.com", since: begin)
                steps.append(
                    Step(
                        at: begin + Int64(number) * 300, actor: one, what: .signUp,
                        network: "hunter\(hunter)"))
            }
        }
    }
}
