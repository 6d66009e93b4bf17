// Address lists as values (RFC 5322 section 3.4, groups in From and Sender by RFC 6854).

/// One mailbox of an address field, with its place in the raw value.
package struct Mailbox: Sendable, Hashable {
    /// The decoded display name (RFC 2047), unquoted; nil if there is none.
    package var displayName: String?
    /// The decoded text of the first comment, which old programs use as a
    /// name; nil if there is none.
    package var comment: String?
    package var addrSpec: AddrSpec
    /// The whole mailbox, from its first word to its last, comments included. Indices are those of
    /// the slice that was parsed.
    package var range: Range<Int>
    /// The addr-spec alone, without angle brackets and route. Indices as in `range`.
    package var addrSpecRange: Range<Int>

    /// A mailbox that is not taken from a message; its ranges are empty.
    package init(displayName: String? = nil, addrSpec: AddrSpec) {
        self.init(
            displayName: displayName, comment: nil, addrSpec: addrSpec, range: 0..<0,
            addrSpecRange: 0..<0)
    }

    init(
        displayName: String?, comment: String?, addrSpec: AddrSpec, range: Range<Int>,
        addrSpecRange: Range<Int>
    ) {
        self.displayName = displayName
        self.comment = comment
        self.addrSpec = addrSpec
        self.range = range
        self.addrSpecRange = addrSpecRange
    }
}

/// An element of an address list.
package enum Address: Sendable, Hashable {
    case mailbox(Mailbox)
    /// A group: its decoded name and its members, possibly none.
    case group(name: String, [Mailbox])

    /// The mailbox, or the members of the group.
    package var mailboxes: [Mailbox] {
        switch self {
        case .mailbox(let mailbox): [mailbox]
        case .group(_, let members): members
        }
    }
}

/// The elements of an address field (From, To, Cc, Reply-To, …) and its defects.
package struct AddressList: Sendable, Hashable {
    package var addresses: [Address]
    package var defects: Set<AddressDefect>

    package init(addresses: [Address], defects: Set<AddressDefect> = []) {
        self.addresses = addresses
        self.defects = defects
    }

    /// All mailboxes in order, members of groups included.
    package var mailboxes: [Mailbox] { addresses.flatMap(\.mailboxes) }

    /// Whether RFC 5322, current or obsolete, has a grammar for the field.
    package var isLegal: Bool { defects.allSatisfy(\.isLegal) }

    /// Reads the raw value of an address field: everything after the colon, folds unchanged.
    ///
    /// Never fails; linear in time and memory, without recursion. If the syntax is broken, this is
    /// one reasonable reading of it, and `defects` reports the faults. `AddressCandidates` finds
    /// the addresses that other programs may read, and `AuthorAddress` refuses ambiguous fields.
    package static func parse(_ value: ArraySlice<UInt8>) -> AddressList {
        var parser = AddressListParser(value)
        return parser.run()
    }

    /// Reads the raw value of an address field.
    package static func parse(_ value: [UInt8]) -> AddressList { parse(value[...]) }

    /// Reads the raw value of an address field; ranges are offsets in its UTF-8 form.
    package static func parse(_ value: String) -> AddressList { parse(Array(value.utf8)[...]) }
}
