// The findings of mail authentication for one message. Facts only: RelayCore decides what they
// prove for the relay.

/// Results of SPF (RFC 7208 section 2.6).
package enum SPFResult: String, Sendable, Hashable, CaseIterable {
    case none, neutral, pass, fail, softfail, temperror, permerror
}

/// Results of one DKIM signature (RFC 8601 section 2.7.1).
package enum DKIMResult: String, Sendable, Hashable, CaseIterable {
    case none, pass, fail, policy, neutral, temperror, permerror
}

/// Results of DMARC (RFC 8601 section 2.7, RFC 9989).
package enum DMARCResult: String, Sendable, Hashable, CaseIterable {
    case none, pass, fail, temperror, permerror
}

/// The SPF finding for one identity.
package struct SPFFinding: Sendable, Hashable {
    package enum Identity: String, Sendable, Hashable { case mailFrom = "mfrom", helo }
    package let result: SPFResult
    package let identity: Identity
    /// The checked domain, in lower case; empty if there was none to check.
    package let domain: String
    /// The reason, for the log and the operator; never sent to the client.
    package let reason: String

    package init(result: SPFResult, identity: Identity, domain: String, reason: String) {
        self.result = result
        self.identity = identity
        self.domain = domain
        self.reason = reason
    }
}

/// The outcome for one DKIM-Signature field.
package struct DKIMFinding: Sendable, Hashable {
    package let result: DKIMResult
    /// `d=`, lower case.
    package let domain: String
    /// `s=`.
    package let selector: String
    /// `a=`, as written; empty if the upstream filter did not report it.
    package let algorithm: String
    /// Whether the signature covers the whole body: no `l=`, or one that reaches the end of the
    /// body.
    package let coversWholeBody: Bool
    /// The reason, for the log and the operator.
    package let reason: String
    /// Domain of `i=`, lower case (`d=` if there is no `i=`); empty if unknown. Its
    /// local part is never kept.
    package let identityDomain: String
    /// The first eight characters of `b=`, which distinguish several signatures (`header.b`, RFC
    /// 6008); empty if unknown.
    package let signaturePrefix: String
    /// Whether the key that decided the result is in test mode (`t=y`); the
    /// result is then never `pass`.
    package let isTesting: Bool
    /// Whether the field breaks the syntax of RFC 6376 section 3.5. Its domain, if it has one, is
    /// then only a claim.
    package let isMalformed: Bool

    package init(
        result: DKIMResult, domain: String, selector: String, algorithm: String,
        coversWholeBody: Bool, reason: String,
        identityDomain: String = "", signaturePrefix: String = "", isTesting: Bool = false,
        isMalformed: Bool = false
    ) {
        self.result = result
        self.domain = domain
        self.selector = selector
        self.algorithm = algorithm
        self.coversWholeBody = coversWholeBody
        self.reason = reason
        self.identityDomain = identityDomain
        self.signaturePrefix = signaturePrefix
        self.isTesting = isTesting
        self.isMalformed = isMalformed
    }
}

/// The DMARC finding for the header From.
package struct DMARCFinding: Sendable, Hashable {
    package let result: DMARCResult
    /// The domain at which a record was found; empty if there is none.
    package let domain: String
    /// `none`, `quarantine` or `reject`, as it applies to the From domain; empty if there is no
    /// record, or if the policy is unknown.
    package let policy: String
    /// The organizational domain of the From domain, by the records found;
    /// nil if no record was found.
    package let organizationalDomain: String?
    /// Whether the record requires a signature of the From domain itself (`adkim=s`); false if no
    /// record was found.
    package let isStrictDKIM: Bool
    /// The same for SPF (`aspf=s`).
    package let isStrictSPF: Bool

    package init(
        result: DMARCResult, domain: String, policy: String, organizationalDomain: String?,
        isStrictDKIM: Bool = false,
        isStrictSPF: Bool = false
    ) {
        self.result = result
        self.domain = domain
        self.policy = policy
        self.organizationalDomain = organizationalDomain
        self.isStrictDKIM = isStrictDKIM
        self.isStrictSPF = isStrictSPF
    }

    /// The same with another result and policy.
    package func with(result: DMARCResult, policy: String) -> DMARCFinding {
        DMARCFinding(
            result: result, domain: domain, policy: policy,
            organizationalDomain: organizationalDomain,
            isStrictDKIM: isStrictDKIM,
            isStrictSPF: isStrictSPF)
    }
}

/// All findings for one message.
package struct AuthenticationEvidence: Sendable, Hashable {
    package var spf: [SPFFinding]
    package var dkim: [DKIMFinding]
    package var dmarc: DMARCFinding?

    package init(spf: [SPFFinding] = [], dkim: [DKIMFinding] = [], dmarc: DMARCFinding? = nil) {
        self.spf = spf
        self.dkim = dkim
        self.dmarc = dmarc
    }
}

/// The SMTP client and envelope sender that SPF checks.
package struct SMTPClientIdentity: Sendable, Hashable {
    /// The client's address in text form (`192.0.2.1`, `2001:db8::1`); nil if there is
    /// none, as on a local socket.
    package let address: String?
    /// The HELO or EHLO argument as given.
    package let helo: String
    /// The reverse-path without angle brackets; empty for the null sender.
    package let mailFrom: String

    package init(address: String?, helo: String, mailFrom: String) {
        self.address = address
        self.helo = helo
        self.mailFrom = mailFrom
    }
}
