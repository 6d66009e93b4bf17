// What a policy did with everyone: how many attacks were asked, and how many people.

/// Counts of one kind of people or of one attack.
struct FraudCount {
    var signUps = 0
    var signUpsAsked = 0
    var others = 0
    var othersAsked = 0
    /// Sign-ups from the twentieth on.
    var later = 0
    var laterAsked = 0
    /// The number of the first sign-up that was asked.
    var firstAsked: Int?
    var blocked = 0

    mutating func add(isSignUp: Bool, isAsked: Bool) {
        guard isSignUp else {
            others += 1
            if isAsked { othersAsked += 1 }
            return
        }
        signUps += 1
        if isAsked {
            signUpsAsked += 1
            firstAsked = firstAsked ?? signUps
        }
        if signUps >= 20 {
            later += 1
            if isAsked { laterAsked += 1 }
        }
    }
}

struct FraudReport {
    private(set) var counts: [Kind: FraudCount] = [:]

    mutating func add(_ kind: Kind, isSignUp: Bool, isAsked: Bool) {
        counts[kind, default: FraudCount()].add(isSignUp: isSignUp, isAsked: isAsked)
    }

    private static func share(_ part: Int, _ whole: Int) -> String {
        guard whole > 0 else { return "-" }
        let tenths = (part * 1_000 + whole / 2) / whole
        return "\(tenths / 10).\(tenths % 10) %"
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }

    /// A table, the attacks first.
    var text: String {
        var lines = [Self.padded("attack", 26) + "sign-ups asked   from the 20th   first asked   later acts asked"]
        for attack in Attack.allCases {
            guard let count = counts[.attack(attack)] else { continue }
            lines.append(
                Self.padded(attack.rawValue, 26)
                    + Self.padded(Self.share(count.signUpsAsked, count.signUps), 17)
                    + Self.padded(Self.share(count.laterAsked, count.later), 16)
                    + Self.padded(count.firstAsked.map { "no. \($0)" } ?? "never", 14)
                    + Self.share(count.othersAsked, count.others))
        }
        lines += ["", Self.padded("real people", 26) + "sign-ups asked   sign-ins and later acts asked"]
        var all = FraudCount()
        for people in People.allCases {
            guard let count = counts[.real(people)] else { continue }
            all.signUps += count.signUps
            all.signUpsAsked += count.signUpsAsked
            all.others += count.others
            all.othersAsked += count.othersAsked
            lines.append(line(people.rawValue, count))
        }
        lines.append(line("all", all))
        return lines.joined(separator: "\n")
    }

    private func line(_ name: String, _ count: FraudCount) -> String {
        Self.padded(name, 26) + Self.padded(Self.share(count.signUpsAsked, count.signUps), 17)
            + Self.share(count.othersAsked, count.others)
    }
}
