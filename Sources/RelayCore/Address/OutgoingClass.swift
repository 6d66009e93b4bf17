// How the return path of a forward shows Postfix by which outgoing identity it leaves.

import Support

/// One of eight classes of return paths: the class is the last character of the local part, four of
/// the 32 characters of base32 each.
///
/// The form of an address does not change with it: the nonce is chosen so that the local part ends
/// in such a character. So a return path shows a reader the identity, which the address of the
/// sending host shows anyway, and nothing about the team.
package struct OutgoingClass: Sendable, Hashable {
    /// Classes there are.
    package static let count = 8
    /// The class of teams without an identity of their own.
    package static let standard = OutgoingClass(0)

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

    private var octets: ArraySlice<UInt8> { Base32.alphabet[(number * 4)..<(number * 4 + 4)] }

    /// Whether a local part is of this class, in any letter case.
    package func covers(_ localPart: String) -> Bool { covers(Array(localPart.utf8)) }

    /// - Parameter localPart: its octets.
    func covers(_ localPart: [UInt8]) -> Bool {
        localPart.last.map { octets.contains($0.asciiLowercased) } ?? false
    }

    /// A POSIX extended regular expression for the local parts of return paths of this class. Those
    /// of replies are of the standard class, if there are identities.
    package var expression: String {
        let letter = String(decoding: [AddressToken.Form.returnPath.rawValue], as: UTF8.self)
        return "[a-z2-7]\(letter)[a-z2-7]{\(ReturnPath.length - 3)}[\(characters)]"
    }
}
