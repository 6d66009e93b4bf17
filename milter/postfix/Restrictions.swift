// Access restrictions of Postfix that refuse mail to relay addresses from any sender.

/// Reads the restriction lists of smtpd as Postfix does: in order, until one restriction decides.
struct Restrictions {
    /// The lists that apply to a message from another server. Each must let it through.
    static let lists = [
        "smtpd_client_restrictions", "smtpd_helo_restrictions", "smtpd_sender_restrictions",
        "smtpd_relay_restrictions",
        "smtpd_recipient_restrictions", "smtpd_data_restrictions", "smtpd_end_of_data_restrictions",
    ]

    /// The items of a list or of a restriction class by its name.
    let items: (String) -> [String]
    /// Names in `smtpd_restriction_classes`.
    let classes: Set<String>
    /// The value of a table for a relay domain, as `check_recipient_access` looks it up.
    var recipientAccess: (_ table: String) -> String? = { _ in nil }

    private enum Answer { case passes, refused(by: String), undecided }

    /// The restriction in a list that refuses mail to every relay address, from a server that no
    /// other restriction accepts; nil if there is none.
    func refusal(in list: [String]) -> String? {
        if case .refused(let item) = answer(list, depth: 0) { item } else { nil }
    }

    /// The result of an action of access(5).
    private func verdict(_ action: String, _ depth: Int) -> Answer {
        let first = action.split { $0 == " " || $0 == "\t" }.first.map(String.init) ?? ""
        let word = first.lowercased()
        switch word {
        case "ok", "permit", "permit_auth_destination": return .passes
        case "reject", "defer", "defer_if_permit", "redirect", "discard", "hold":
            return .refused(by: word)
        case _ where classes.contains(first) && depth < 8:
            return answer(items(first), depth: depth + 1)
        default:
            guard word.utf8.count >= 3, word.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                return .undecided
            }
            return word.utf8.count == 3 && (word.hasPrefix("4") || word.hasPrefix("5"))
                ? .refused(by: word) : .passes
        }
    }

    private func answer(_ list: [String], depth: Int) -> Answer {
        var rest = list[...]
        while let item = rest.popFirst() {
            switch item.lowercased() {
            // Only logs the refusal of the next restriction.
            case "warn_if_reject": _ = rest.popFirst()
            // The relay domains are destinations of this Postfix.
            case "permit", "permit_auth_destination": return .passes
            // It checks the transport of the address, which is a dead end here.
            case "reject", "defer", "defer_if_permit", "reject_unverified_recipient":
                return .refused(by: item)
            case let word where word.hasPrefix("check_"):
                guard let table = rest.popFirst() else { break }
                // A static table gives the same answer for every key.
                let isStatic = TableQuestion(table: table, key: "").type == "static"
                let action =
                    isStatic
                    ? String(table.dropFirst("static:".count))
                    : word == "check_recipient_access" ? recipientAccess(table) : nil
                switch action.map({ verdict($0, depth) }) {
                case .passes: return .passes
                case .refused: return .refused(by: "\(item) \(table)")
                case .undecided, nil: break
                }
            default:
                guard classes.contains(item), depth < 8 else { continue }
                let own = answer(items(item), depth: depth + 1)
                if case .undecided = own { continue }
                return own
            }
        }
        return .undecided
    }
}
