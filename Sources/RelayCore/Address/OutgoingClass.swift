// How the return path of a forward shows Postfix by which outgoing identity it leaves.

import Support

/// One of eight classes of return paths: the class is the last character of the local part, four of
/// the 32 characters of base32 each.
///
/// The form of an address does not change with it: the nonce is chosen so that the MAC ends in such
/// a character. So a return path shows a reader the identity, which the address of the sending host
/// shows anyway, and nothing about the team.
package struct OutgoingClass: Sendable, Hashable {
    /// Classes there are.
    package static let count = 8
    /// The class of teams without an identity of their own.
    package static let standard = OutgoingClass(0)
    private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

    /// Below `count`.
    package let number: Int

    private init(_ number: Int) { self.number = number }

    /// Nil for a number that is not below `count`.
    package init?(number: Int) {
        guard (0..<Self.count).contains(number) else { return nil }
        self.init(number)
    }

    /// The characters of the class.
    package var characters: String { String(decoding: octets, as: UTF8.self) }

    private var octets: ArraySlice<UInt8> { Self.alphabet[(number * 4)..<(number * 4 + 4)] }

    /// Whether a local part is of this class, in any letter case.
    package func covers(_ localPart: String) -> Bool {
        localPart.utf8.last.map { octets.contains($0.asciiLowercased) } ?? false
    }

    /// A POSIX extended regular expression for the local parts of forwards of this class. A
    /// return path of a reply, and any other address, never matches.
    package var expression: String {
        let letters = AddressToken.Purpose.ofForwards.map {
            String(decoding: [$0.rawValue], as: UTF8.self)
        }.joined()
        let shortest = AddressToken.Purpose.ofForwards.map(\.length).min() ?? 0
        let longest = AddressToken.Purpose.ofForwards.map(\.length).max() ?? 0
        return
            "([^@]*[.])?[a-z2-7][\(letters)][a-z2-7]{\(shortest - 3),\(longest - 3)}[\(characters)]"
    }
}
