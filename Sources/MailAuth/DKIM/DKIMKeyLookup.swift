// Keys from the DNS (RFC 6376 section 6.1.2). Each name is queried once per message, and the number
// of names is limited.

struct DKIMKeyLookup {
    enum Outcome {
        /// At least one usable key.
        case found([DKIMKeyRecord])
        case failed(DKIMResult, String)
    }

    private let resolver: any DNSResolver
    private let limits: DKIMLimits
    /// By name: at most `lookups`.
    private var outcomes: [(name: String, outcome: Outcome)] = []

    init(resolver: any DNSResolver, limits: DKIMLimits) {
        self.resolver = resolver
        self.limits = limits
    }

    mutating func records(_ name: String) -> Outcome {
        if let known = outcomes.first(where: { $0.name == name }) { return known.outcome }
        guard outcomes.count < limits.lookups else {
            return .failed(.permerror, "more than \(limits.lookups) key lookups would be needed")
        }
        let outcome = ask(name)
        outcomes.append((name, outcome))
        return outcome
    }

    private func ask(_ name: String) -> Outcome {
        switch resolver.query(name, .txt) {
        case .temporaryFailure(let reason):
            return .failed(.temperror, "no answer for the key: \(reason)")
        case .nxDomain, .noData: return .failed(.permerror, "no key in the DNS")
        case .records(let records):
            var usable = [DKIMKeyRecord]()
            var objections = [DKIMKeyRecord.Unusable]()
            for case .txt(let text) in records {
                guard usable.count < limits.keysPerName else { break }
                switch DKIMKeyRecord.parsed[text] {
                case .success(let record): usable.append(record)
                case .failure(let objection): objections.append(objection)
                }
            }
            guard usable.isEmpty else { return .found(usable) }
            // An unusable key, such as a revoked one, is a better reason than another record.
            let objection = objections.first { $0.isKeyRecord } ?? objections.first
            return .failed(.permerror, objection?.reason ?? "no key in the DNS")
        }
    }
}
