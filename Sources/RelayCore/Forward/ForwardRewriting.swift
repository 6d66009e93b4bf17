// The header section of a forward: every address that the user could answer becomes a reverse
// address.

import InternetMessage
import MailAuth
import MailCrypto

struct ForwardRewriting {
    let engine: RelayEngine
    let account: RelayAccount
    private let author: AddrSpec
    private let now: Int64
    /// Whether nothing proves that the team wrote the fields of this name. Anyone could have added
    /// one to a signed message and sent that message again.
    private let isUnproved: (String) -> Bool
    /// What was found for a name in lower case. Each look reads the signatures.
    private var proofs: [[UInt8]: Bool] = [:]
    /// Names beyond this number count as unproved. Ordinary mail has some ten.
    private static let maximumProofs = 64
    private var legal = LegalFields(HeaderSection())
    /// Addresses that do not fit their tokens, by token. Store them before the mail leaves.
    private(set) var toStore: [String: StoredAddress] = [:]
    /// Changes that the reader may miss.
    private(set) var reasons: [RelayReason] = []

    static let originalFromField = "X-Postern-Original-From"

    /// Removed fields, in addition to those that lead elsewhere (`FieldNames`): signatures over
    /// changed parts, fields of earlier stages (ARC, DKIM2), and the team's Feedback-ID, in place
    /// of which the relay writes its own. Receivers expect a single signed one.
    private static let removed: FieldNameSet = [
        "dkim-signature", "domainkey-signature", "x-google-dkim-signature", "arc-seal",
        "arc-message-signature",
        "arc-authentication-results", "dkim2-signature", "message-instance", "feedback-id",
        "x-feedback-id",
    ]

    /// - Parameter now: seconds since 1970.
    init(
        engine: RelayEngine, account: RelayAccount, author: AddrSpec, now: Int64 = 0,
        isUnproved: @escaping (String) -> Bool = { _ in false }
    ) {
        self.now = now
        self.isUnproved = isUnproved
        self.engine = engine
        self.account = account
        self.author = author
    }

    /// The display name for a mailbox without one, so that the user sees who is behind the reverse
    /// address.
    static func madeUpName(_ address: AddrSpec) -> String { ShownName.madeUp(address) }

    /// - Returns: the edits, and the addresses to store before the mail leaves.
    mutating func rewrite(
        _ header: HeaderSection, evidence: AuthenticationEvidence
    ) throws(Refusal) -> (edits: HeaderEdits, toStore: [StoredAddress]) {
        let edits = try edits(header, evidence: evidence)
        let limits = engine.settings.limits
        guard toStore.count <= limits.storedAddresses else {
            throw .tooManyAddresses(limits.storedAddresses)
        }
        if let name = edits.firstField(longerThan: limits.rewrittenFieldSize) {
            throw .fieldTooLong(name)
        }
        return (edits, Array(toStore.values))
    }

    private mutating func edits(
        _ header: HeaderSection, evidence: AuthenticationEvidence
    ) throws(Refusal) -> HeaderEdits {
        legal = LegalFields(header)
        var edits = HeaderEdits(header)
        let others = try others(in: header)
        let noting =
            header.fields.firstIndex { $0.isNamed("To") }
            ?? header.fields.firstIndex { $0.isNamed("Cc") }
        for (index, field) in header.fields.enumerated() {
            if let name = unprovedName(of: field) {
                edits.edits[index] = .remove
                let reason = RelayReason(
                    .fieldUnsigned,
                    "the signature does not cover \(name), which leads away from the team")
                if !reasons.contains(reason) { reasons.append(reason) }
            } else if Self.removed.contains(field) || field.nameBegins(with: "x-postern-") {
                edits.edits[index] = .remove
            } else {
                switch FieldNames.inForward(field) {
                case .reverse:
                    edits.edits[index] = rewriteAddresses(
                        field, others: index == noting ? others : 0)
                case .links: edits.edits[index] = rewriteList(field)
                case .ids: edits.edits[index] = restoreIdentifiers(field, of: header)
                case .removed: edits.edits[index] = .remove
                case nil:
                    if field.isNamed("Message-ID") {
                        edits.edits[index] = restoreIdentifiers(field, of: header)
                    }
                }
            }
        }
        for index in AuthenticationResults.fieldsClaiming(
            ids: [engine.settings.authservID], in: header)
        {
            edits.edits[index] = .remove
        }
        edits.inserted = inserted(header, evidence: evidence)
        addWitnesses(header, to: &edits)
        makeLegal(header, &edits)
        return edits
    }

    /// Rewrites every outgoing field so that no server on the way needs SMTPUTF8 or breaks a line.
    private func makeLegal(_ header: HeaderSection, _ edits: inout HeaderEdits) {
        for (index, field) in header.fields.enumerated() {
            switch edits.edits[index] {
            case .remove: break
            case .keep: if let value = legal.value(field) { edits.edits[index] = .replace(value) }
            case .replace(let value):
                if let value = legal.value(HeaderField(name: field.name, rawValue: value)) {
                    edits.edits[index] = .replace(value)
                }
            }
        }
        edits.inserted = legal.legal(HeaderSection(edits.inserted)).fields
    }

    /// Fields whose addresses a program answers.
    private static let answering = ["Reply-To", "Cc", "Sender"]

    /// The name of a field that leads away from the team and that nothing proves; nil for others.
    private mutating func unprovedName(of field: HeaderField) -> String? {
        if let name = Self.answering.first(where: { field.isNamed($0) }) {
            return isUnprovedField(field) && leadsOutside(field) ? name : nil
        }
        // A program follows these links without a look at their domain. The relay's own signature
        // would make one of them count for one click (RFC 8058).
        guard FieldNames.inForward(field) == .links, isUnprovedField(field) else { return nil }
        // Its name is a stranger's text, and the log has it.
        return "a field with links"
    }

    private mutating func isUnprovedField(_ field: HeaderField) -> Bool {
        let name = field.name.utf8.map(\.asciiLowercased)
        if let known = proofs[name] { return known }
        guard proofs.count < Self.maximumProofs else { return true }
        let found = isUnproved(field.name)
        proofs[name] = found
        return found
    }

    /// Whether an address of the field does not belong to the team.
    private func leadsOutside(_ field: HeaderField) -> Bool {
        !addresses(of: field).list.mailboxes.allSatisfy { mailbox in
            account.sources.contains { $0.isOfTeam(mailbox.addrSpec) }
        }
    }

    /// The rule for subject and body of links.
    var words: MailtoWords { MailtoWords(relayAddress: account.relayAddress) }

    private func inserted(
        _ header: HeaderSection, evidence: AuthenticationEvidence
    ) -> [HeaderField] {
        var hops = 0
        if case .hops(let count) = engine.mark.trace(header) { hops = count }
        var fields = [
            AuthenticationResults.field(
                authservID: engine.settings.authservID, evidence: evidence,
                fromDomain: author.asciiDomain),
            engine.mark.field(hops: hops),
            engine.witness.field(for: header, account: account.number),
        ]
        if let from = header.first("From") {
            let field = HeaderField(name: Self.originalFromField, rawValue: from.rawValue)
            // The longer name may make a line too long. The value then begins on its own line.
            fields.append(
                field.fitsLines
                    ? field
                    : HeaderField(
                        name: Self.originalFromField,
                        rawValue: [0x0D, 0x0A, 0x20] + HeaderField.trim(from.rawValue)))
        }
        // Large providers refuse mail without these.
        if header.first("Date") == nil {
            fields.append(HeaderField("Date", MessageDate.format(now)))
        }
        if header.first("Message-ID") == nil {
            fields.append(
                HeaderField(name: "Message-ID", rawValue: MessageIDs.value([madeID(header)])))
        }
        return fields
    }

    // MARK: Addresses

    /// The reverse address of a correspondent, at the domain of the account's relay address.
    mutating func reverse(_ correspondent: AddrSpec) -> AddrSpec {
        // The message will be refused, so no more work is done on it.
        guard toStore.count <= engine.settings.limits.storedAddresses else {
            return account.relayAddress
        }
        let token = engine.tokens.reverse(account: account.number, correspondent: correspondent)
        if let address = StoredAddress(token) { toStore[address.token] = address }
        return AddrSpec(localPart: token.localPart, domain: account.relayAddress.domain)
    }

    func isRelayAddress(_ address: AddrSpec) -> Bool {
        address.localPart.foldedIdentity == account.relayAddress.localPart
            && address.domain.lowercased() == account.relayAddress.domain.lowercased()
    }

    /// Address fields that a reply to all uses. The addresses of other users of the relay are
    /// removed from them.
    private static let answered: FieldNameSet = ["reply-to", "to", "cc"]

    /// Whether an address at a relay domain belongs neither to this account nor to the operator.
    /// Only the team can write to such an address. A reverse address of it would be useless, as the
    /// user's reply could not be delivered.
    private func isAnotherUsers(_ address: AddrSpec) -> Bool {
        engine.settings.isRelayDomain(address.domain) && !isRelayAddress(address)
            && engine.settings.operatorMailbox(address.localPart.foldedIdentity) == nil
    }

    /// The number of other users in To and Cc. A user, also this one, may appear with several
    /// addresses. An address without a user counts as one user, and so does each address beyond the
    /// number that a transaction may name.
    private func others(in header: HeaderSection) throws(Refusal) -> Int {
        var accounts: Set<AccountNumber> = []
        var addresses: Set<String> = []
        for field in header.all("To") + header.all("Cc") {
            for mailbox in AddressList.parse(field.rawValue).mailboxes
            where isAnotherUsers(mailbox.addrSpec) {
                addresses.insert(mailbox.addrSpec.folded.wireForm)
            }
        }
        var own: Set<AccountNumber> = [account.number]
        own.formUnion(account.successors.map(\.number))
        var unknown = max(0, addresses.count - engine.settings.limits.recipients)
        for address in addresses.sorted().prefix(engine.settings.limits.recipients) {
            let numbers = try owners(of: address)
            if let number = numbers.first {
                if own.isDisjoint(with: numbers) { accounts.insert(number) }
            } else {
                unknown += 1
            }
        }
        return accounts.count + unknown
    }

    /// The account of an address at a relay domain, and its successors; empty if it has none.
    private func owners(of address: String) throws(Refusal) -> [AccountNumber] {
        switch RecipientReading.read(
            "<\(address)>", settings: engine.settings, tokens: engine.tokens)
        {
        case .relayAddress(let localPart, let domain):
            let account = try Refusal.deferring(
                engine.directory.account(relayAddress: localPart, domain: domain))
            return account.map { [$0.number] + $0.successors.map(\.number) } ?? []
        case .reverse(let token), .returnPath(let token): return [token.account]
        default: return []
        }
    }

    /// Mentions the removed users in a comment after the addresses. No program takes a comment for
    /// a recipient, as some do with an empty group. Some show it as the name of the address before
    /// it.
    private static func note(others: Int) -> [UInt8] {
        others == 0
            ? []
            : Array(
                "\r\n (you and \(others) other user\(others == 1 ? "" : "s") of this relay)".utf8)
    }

    private mutating func rewritten(_ mailbox: Mailbox) -> Mailbox {
        if isRelayAddress(mailbox.addrSpec) {
            return Mailbox(
                displayName: ShownName.shown(mailbox.displayName, of: mailbox.addrSpec),
                addrSpec: mailbox.addrSpec)
        }
        let name = ShownName.shown(mailbox.displayName ?? mailbox.comment, of: mailbox.addrSpec)
        return Mailbox(
            displayName: name ?? Self.madeUpName(mailbox.addrSpec),
            addrSpec: reverse(mailbox.addrSpec))
    }

    /// The addresses of a field. The field is decoded first if it is not UTF-8, or if an encoded
    /// word is in the place of an address. Many programs write such words.
    private func addresses(of field: HeaderField) -> (list: AddressList, isDecoded: Bool) {
        let list = AddressList.parse(field.rawValue)
        if list.defects.contains(.encodedWordInAddress) {
            return (AddressList.parse(EncodedWord.decode(legal.text(field))), true)
        }
        guard list.defects.contains(.notUTF8) else { return (list, false) }
        // A name may be in any charset, but an address in such a charset cannot be read.
        var read = AddressList.parse(legal.text(field))
        read.addresses = read.addresses.compactMap {
            switch $0 {
            case .mailbox(let mailbox): mailbox.addrSpec.isASCII ? $0 : nil
            case .group(let name, let members):
                .group(name: name, members.filter(\.addrSpec.isASCII))
            }
        }
        return (read, true)
    }

    /// - Parameter others: how many other users the message names, if this field mentions them.
    private mutating func rewriteAddresses(_ field: HeaderField, others: Int) -> HeaderEdits.Edit {
        let (read, isDecoded) = addresses(of: field)
        var list = read
        if !list.isLegal, field.isNamed("From"), var author = list.mailboxes.first {
            // Only one mailbox was accepted; any text around it does not matter.
            author.displayName = AuthorAddress.name(value: field.rawValue)
            list.addresses = [.mailbox(author)]
        }
        let mailboxes = list.mailboxes
        let leavesOut = Self.answered.contains(field)
        func stays(_ mailbox: Mailbox) -> Bool {
            (isRelayAddress(mailbox.addrSpec) || mailbox.addrSpec.leadsSomewhere)
                && (!leavesOut || !isAnotherUsers(mailbox.addrSpec))
        }
        if others == 0, !isDecoded, mailboxes.allSatisfy(stays),
            list.defects.allSatisfy(Self.leavesAddressesClear),
            ShownName.isShown(list, in: field.rawValue)
        {
            if mailboxes.isEmpty, !list.addresses.isEmpty,
                AddressCandidates.find(in: field.rawValue).isEmpty,
                field.rawValue.allSatisfy({ $0 < 0x80 })
            {
                return .keep
            }
            if !mailboxes.isEmpty, let value = inPlace(field, mailboxes) {
                return value.elementsEqual(field.rawValue) ? .keep : .replace(value)
            }
        }

        var addresses: [Address] = list.addresses.compactMap {
            switch $0 {
            case .mailbox(let mailbox): stays(mailbox) ? .mailbox(rewritten(mailbox)) : nil
            case .group(let name, let members):
                .group(
                    name: ShownName.shown(name) ?? "", members.filter(stays).map { rewritten($0) })
            }
        }
        if addresses.isEmpty {
            // No address can be answered. Only To must stay, and it shows the user which address
            // was used.
            guard field.isNamed("To") || others > 0 else { return .remove }
            addresses = [.mailbox(Mailbox(addrSpec: account.relayAddress))]
        }
        return .replace(
            AddressFieldValue.write(addresses, nameLength: field.nameLength)
                + Self.note(others: others))
    }

    /// Whether the addresses of a list are clear despite a defect, so that only they must be
    /// replaced. Not with a route, which would stay before the new address. Not with spaces in an
    /// address, which the relay address would keep.
    private static func leavesAddressesClear(_ defect: AddressDefect) -> Bool {
        switch defect {
        case .obsoleteRoute, .obsoleteDomain, .obsoleteLocalPart: false
        case .notUTF8, .encodedWordInQuotes: true
        default: defect.isLegal
        }
    }

    /// The value with only the addresses replaced. Names, comments and folds stay unchanged.
    private mutating func inPlace(_ field: HeaderField, _ mailboxes: [Mailbox]) -> [UInt8]? {
        let raw = field.rawValue
        var out: [UInt8] = []
        var position = raw.startIndex
        for mailbox in mailboxes where !isRelayAddress(mailbox.addrSpec) {
            let range = mailbox.displayName == nil ? mailbox.range : mailbox.addrSpecRange
            guard range.lowerBound >= position, range.upperBound <= raw.endIndex else { return nil }
            out += raw[position..<range.lowerBound]
            out +=
                (mailbox.displayName == nil
                ? rewritten(mailbox).serialized : reverse(mailbox.addrSpec).wireForm).utf8
            position = range.upperBound
        }
        out += raw[position...]
        // Reverse addresses are long. A line that became too long is written again, and so is a
        // value that is not ASCII.
        return out.allSatisfy { $0 < 0x80 }
            && HeaderField.fitsLines(out, after: field.nameLength + 1) ? out : nil
    }

    // MARK: Mailing lists

    /// Rewrites the `mailto:` URIs between angle brackets. Text outside brackets is not a URI (RFC
    /// 2369 section 2) and is removed. A URI with a body is also removed if an https URI is next to
    /// it. Encoded words are decoded first, as many programs do.
    private mutating func rewriteList(_ field: HeaderField) -> HeaderEdits.Edit {
        let written = ListURIs(field.unfoldedBytes)
        let read =
            EncodedWord.occurs(in: field.rawValue)
            ? ListURIs(Array(field.decodedValue.utf8)) : written
        var uris = read.uris
        var changed = uris != written.uris
        let hasWeb = uris.contains { $0.map(\.asciiLowercased).starts(with: "https:".utf8) }
        let words = MailtoWords(relayAddress: account.relayAddress, keepsBody: true)
        uris = uris.compactMap { uri in
            guard let mailto = MailtoURI(uri) else { return uri }
            changed = true
            if mailto.hasBody {
                note(
                    hasWeb ? "left out, as an https URI is beside it" : "kept as plain words alone")
            }
            guard !mailto.hasBody || !hasWeb else { return nil }
            let new = mailto.mapping(words: words) {
                isRelayAddress($0) ? $0 : $0.leadsSomewhere ? reverse($0) : nil
            }
            // Without an address, the URI leads nowhere.
            return MailtoURI(new)?.hasRecipients == true ? new : nil
        }
        guard changed || read.holdsAddressOutside else { return .keep }
        guard !uris.isEmpty else { return .remove }
        var out: [UInt8] = []
        for (index, uri) in uris.enumerated() {
            if index > 0 { out += Array(",\r\n".utf8) }
            out += [0x20, UInt8(ascii: "<")] + uri + [UInt8(ascii: ">")]
        }
        return .replace(out)
    }

    private mutating func note(_ detail: String) {
        let reason = RelayReason(
            .listMailto, "a mailto URI of a mailing list with a body: \(detail)")
        if !reasons.contains(where: { $0.detail.hasSameOctets(as: reason.detail) }) {
            reasons.append(reason)
        }
    }

    // MARK: Message ids

    /// Replaces the hidden ids that the team knows by the user's own. Replaces ids that are not
    /// legal by legal stand-ins.
    private func restoreIdentifiers(
        _ field: HeaderField, of header: HeaderSection
    ) -> HeaderEdits.Edit {
        let ids = MessageIDs.read(in: field.rawValue)
        if ids.isEmpty, field.isNamed("Message-ID") {
            return .replace(MessageIDs.value([madeID(header)]))
        }
        let restored = ids.map {
            engine.ids.reveal(
                $0, account: account.number, isRelayDomain: engine.settings.isRelayDomain)
                ?? legal($0)
        }
        return restored == MessageIDs.ids(in: field.rawValue)
            ? .keep : .replace(MessageIDs.value(restored))
    }

    /// Programs of the user may change an id without `@`, and some servers change an id without
    /// brackets.
    private func legal(_ id: [UInt8]) -> [UInt8] {
        MessageIDs.isLegal(id)
            ? id
            : engine.ids.standIn(
                for: id, account: account.number, relayDomain: account.relayAddress.domain)
    }

    /// The id for a message that has none. It is the same when the message is repeated. No team
    /// sees it, as it has the form of a witness.
    private func madeID(_ header: HeaderSection) -> [UInt8] {
        engine.ids.witness(
            for: SHA256.hash(header.serialized), account: account.number,
            relayDomain: account.relayAddress.domain)
    }

    /// Maximum witnesses for one message. The ids beyond this number are the oldest; an answer
    /// shows them to the team as hidden ids.
    private static let maximumWitnesses = 20

    /// Adds witnesses to References for the team's ids that are not at a domain of the team. They
    /// distinguish such ids from the user's own in the references of the answer
    /// (MessageIDs.witness). Earlier ids of the thread need witnesses again, as the team never sees
    /// a witness and so does not repeat it.
    private func addWitnesses(_ header: HeaderSection, to edits: inout HeaderEdits) {
        var ids =
            header.first("Message-ID").map { MessageIDs.read(in: $0.rawValue).prefix(1) } ?? []
        for name in ["In-Reply-To", "References"] {
            ids += header.all(name).flatMap { MessageIDs.read(in: $0.rawValue) }.reversed()
        }
        var seen: Set<[UInt8]> = []
        let witnesses = ids.filter { isForeign($0) && seen.insert($0).inserted }.prefix(
            Self.maximumWitnesses
        ).map {
            engine.ids.witness(
                for: $0, account: account.number, relayDomain: account.relayAddress.domain)
        }
        guard !witnesses.isEmpty else { return }
        if let index = header.fields.firstIndex(where: { $0.isNamed("References") }) {
            let ids: [[UInt8]]
            if case .replace(let value) = edits.edits[index] {
                ids = MessageIDs.ids(in: value)
            } else {
                ids = MessageIDs.ids(in: header.fields[index].rawValue)
            }
            edits.edits[index] = .replace(MessageIDs.value(witnesses + ids))
        } else {
            edits.inserted.append(
                HeaderField(name: "References", rawValue: MessageIDs.value(witnesses)))
        }
    }

    /// Whether an id is not at a domain of the team, and was not made by Postern.
    private func isForeign(_ id: [UInt8]) -> Bool {
        guard let at = id.lastIndex(of: UInt8(ascii: "@")) else { return false }
        let domain = String(decoding: id[(at + 1)...], as: UTF8.self)
        return !engine.settings.isRelayDomain(domain)
            && !account.sources.contains { $0.ownsIdentifier(at: domain) }
    }
}
