// DMARC (RFC 9989): the policy that applies to the header From, and whether SPF or DKIM proves it.

import InternetMessage
import Support

/// Domain-based Message Authentication, Reporting, and Conformance, by tree walk;
/// no public-suffix list.
package enum DMARC {
    /// The record at `_dmarc.` of a domain.
    package enum RecordLookup: Sendable, Hashable {
        case record(DMARCRecord)
        /// No record, or more than one (RFC 9989 section 4.10).
        case none
        case temporaryFailure(String)
    }

    /// The outcome of a search for an organizational domain.
    package enum OrganizationalDomain: Sendable, Hashable {
        /// By a record that was found at the domain or above it; lower case.
        case found(String)
        /// No record at the domain or above it, or not a valid domain name.
        case none
        case temporaryFailure(String)
    }

    /// Maximum authenticated domains of one message for which the organizational domain is looked
    /// up; the others count as not aligned. So a message with many signatures cannot cause many
    /// queries.
    package static let maximumAlignmentWalks = 10

    /// The record of a domain itself, without a walk.
    package static func record(at domain: String, resolver: any DNSResolver) -> RecordLookup {
        guard let name = DomainName.queryable("_dmarc." + domain) else { return .none }
        switch resolver.query(name, .txt) {
        case .records(let records):
            let found = records.compactMap {
                if case .txt(let text) = $0 { DMARCRecord.parsed[text] } else { nil }
            }
            guard let record = found.first, found.count == 1 else { return .none }
            return .record(record)
        case .noData, .nxDomain: return .none
        case .temporaryFailure(let reason): return .temporaryFailure(reason)
        }
    }

    /// The organizational domain (RFC 9989 section 4.10.2) by the records found. Needs at most
    /// eight queries.
    package static func organizationalDomain(
        of domain: String, resolver: any DNSResolver
    ) -> OrganizationalDomain {
        guard let name = DomainName.queryable(domain) else { return .none }
        let walk = DMARCTreeWalk(from: name) { record(at: $0, resolver: resolver) }
        if let failure = walk.failure { return .temporaryFailure(failure) }
        return walk.organizationalDomain.map { .found($0) } ?? .none
    }

    /// Evaluates DMARC for one message.
    ///
    /// - Parameters:
    ///   - fromDomain: the domain of the one address in the header From, as A-labels.
    ///   - spf: a finding for HELO counts only if there is none for MAIL FROM (the null sender; RFC
    ///     9989 section 4.4.2).
    ///   - dkim: a signature counts by its result alone, even if it does not cover the whole body:
    ///     DMARC is information, and the relay decides what proves a sender.
    /// - Returns: `temperror` if no record could be looked up, or if an identifier that failed for
    ///   a temporary reason might have been aligned; `permerror` if the From domain is not a valid
    ///   domain name.
    package static func evaluate(
        fromDomain: String, spf: [SPFFinding], dkim: [DKIMFinding], resolver: any DNSResolver
    ) -> DMARCFinding {
        guard let from = DomainName.queryable(fromDomain) else {
            return DMARCFinding(
                result: .permerror, domain: "", policy: "", organizationalDomain: nil)
        }
        var evaluation = Evaluation(from: from, resolver: resolver)
        return evaluation.finding(spf: spf, dkim: dkim)
    }

    /// The state of one evaluation, with the look-ups already made.
    private struct Evaluation {
        private let from: String
        private let resolver: any DNSResolver
        /// At most eight for each walk; there is at most one walk more than there are alignments.
        private var records: [(name: String, lookup: RecordLookup)] = []
        private var alignments: [(domain: String, alignment: Alignment)] = []
        private var walk: DMARCTreeWalk?

        private enum Alignment { case aligned, notAligned, unknown }

        init(from: String, resolver: any DNSResolver) {
            self.from = from
            self.resolver = resolver
        }

        mutating func finding(spf: [SPFFinding], dkim: [DKIMFinding]) -> DMARCFinding {
            let walk = walk(from: from)
            self.walk = walk
            let organization = walk.failure == nil ? walk.organizationalDomain : nil
            // If the walk failed, the applicable record is certain only if it is the domain's own.
            guard let applicable = walk.applicable, walk.failure == nil || applicable.domain == from
            else {
                return DMARCFinding(
                    result: walk.failure == nil ? .none : .temperror, domain: "", policy: "",
                    organizationalDomain: organization)
            }
            let record = applicable.record
            guard record.hasUsablePolicy else {
                return DMARCFinding(
                    result: .none, domain: "", policy: "", organizationalDomain: organization,
                    isStrictDKIM: record.strictDKIM,
                    isStrictSPF: record.strictSPF)
            }
            return DMARCFinding(
                result: result(record, spf: spf, dkim: dkim), domain: applicable.domain,
                policy: policy(applicable).rawValue, organizationalDomain: organization,
                isStrictDKIM: record.strictDKIM,
                isStrictSPF: record.strictSPF)
        }

        private func policy(_ applicable: DMARCTreeWalk.Found) -> DMARCRecord.Policy {
            let record = applicable.record
            var policy = record.policy
            if applicable.domain != from {
                policy = record.policyForSubdomain(exists: true)
                // Only a name for which the DNS answers NXDOMAIN does not exist (RFC 9989 section
                // 3.2). It is queried only if the result matters.
                let other = record.policyForSubdomain(exists: false)
                if other != policy, case .nxDomain = resolver.query(from, .a) { policy = other }
            }
            return record.isTesting ? policy.lowered : policy
        }

        private mutating func result(
            _ record: DMARCRecord, spf: [SPFFinding], dkim: [DKIMFinding]
        ) -> DMARCResult {
            let mailFrom = spf.filter { $0.identity == .mailFrom }
            let counted = mailFrom.isEmpty ? spf : mailFrom
            var isUndecided = false
            // All identifiers that passed come first: after an aligned pass, the rest needs no
            // queries.
            let passed =
                dkim.filter { $0.result == .pass }.map { ($0.domain, record.strictDKIM) }
                + counted.filter { $0.result == .pass }.map { ($0.domain, record.strictSPF) }
            for (domain, isStrict) in passed {
                switch alignment(of: domain, isStrict: isStrict) {
                case .aligned: return .pass
                case .unknown: isUndecided = true
                case .notAligned: continue
                }
            }
            let delayed =
                dkim.filter { $0.result == .temperror }.map { ($0.domain, record.strictDKIM) }
                + counted.filter { $0.result == .temperror }.map { ($0.domain, record.strictSPF) }
            for (domain, isStrict) in delayed
            where alignment(of: domain, isStrict: isStrict) != .notAligned {
                isUndecided = true
            }
            return isUndecided ? .temperror : .fail
        }

        private mutating func alignment(of identifier: String, isStrict: Bool) -> Alignment {
            guard let domain = DomainName.queryable(identifier) else { return .notAligned }
            if domain == from { return .aligned }
            if isStrict { return .notAligned }
            guard let walk, walk.failure == nil else { return .unknown }
            // An organizational domain is the domain itself or above it, so a domain outside of it
            // needs no walk.
            guard let organization = walk.organizationalDomain,
                DomainName.isEqualOrBelow(domain, organization)
            else {
                return .notAligned
            }
            if let known = alignments.first(where: { $0.domain == domain }) {
                return known.alignment
            }
            guard alignments.count < maximumAlignmentWalks else { return .notAligned }
            let other = self.walk(from: domain)
            let alignment: Alignment =
                other.failure != nil
                ? .unknown : other.organizationalDomain == organization ? .aligned : .notAligned
            alignments.append((domain, alignment))
            return alignment
        }

        /// One walk. Names that an earlier walk queried are not queried again.
        private mutating func walk(from domain: String) -> DMARCTreeWalk {
            DMARCTreeWalk(from: domain) { name in
                if let known = records.first(where: { $0.name == name }) { return known.lookup }
                let answer = record(at: name, resolver: resolver)
                records.append((name, answer))
                return answer
            }
        }
    }
}
