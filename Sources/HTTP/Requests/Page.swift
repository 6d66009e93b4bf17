// Pagination by cursors, which are opaque and valid only for their listing.

import Hummingbird
import MailCrypto
import Support

/// Makes and reads cursors: the position where a listing continues, with a MAC over it, the
/// listing and its owner.
package struct Cursors: Sendable, SecretHolder {
    private let key: [UInt8]
    private static let macLength = 12
    /// Octets of a position: an identifier, or a few numbers.
    private static let positionLimit = 512

    /// - Parameter key: 32 secret octets, the same on all hosts.
    package init(key: [UInt8]) { self.key = key }

    /// - Parameters:
    ///   - position: the item after which the listing continues.
    ///   - listing: the kind of listing and its owner, as in `accounts team:juice`; a cursor is
    ///     valid for no other listing.
    package func cursor(after position: String, of listing: String) -> String {
        let octets = Array(position.utf8)
        return Base64URL.encode(mac(octets, listing) + octets)
    }

    /// Throws `Problem` (400) for text that is not a cursor of this listing.
    package func position(_ cursor: String, of listing: String) throws -> String {
        guard cursor.utf8.count <= 2 * Self.positionLimit, let data = Base64URL.decode(cursor.utf8),
            data.count >= Self.macLength,
            constantTimeEqual(
                Array(data.prefix(Self.macLength)),
                mac(Array(data.dropFirst(Self.macLength)), listing))
        else {
            throw Problem.malformed(
                "cursor: not a cursor of this list; use next_cursor of the previous page")
        }
        return String(decoding: data.dropFirst(Self.macLength), as: UTF8.self)
    }

    private func mac(_ position: [UInt8], _ listing: String) -> [UInt8] {
        let message = Array("postern cursor 1 \(listing.utf8.count) \(listing) ".utf8) + position
        return Array(HMACSHA256.authenticationCode(for: message, key: key).prefix(Self.macLength))
    }
}

/// The requested page of a listing: `?limit=…&cursor=…`.
package struct PageRequest: Sendable {
    /// 1 … 200, or less if a page costs more.
    package let limit: Int
    /// The item before the page; nil for the first page.
    package let after: String?
    private let cursors: Cursors
    private let listing: String

    package static let parameters: Set<WireText> = ["limit", "cursor"]

    /// Throws `Problem` (400).
    /// - Parameters:
    ///   - query: as `Request.query` reads it.
    ///   - listing: the kind of listing and its owner.
    package init(
        _ query: [WireText: WireText], _ cursors: Cursors, listing: String, standard: Int = 50,
        maximum: Int = 200
    ) throws {
        self.cursors = cursors
        self.listing = listing
        if let text = query["limit"] {
            guard let number = text.integer.flatMap(Int.init(exactly:)),
                (1...maximum).contains(number)
            else {
                throw Problem.malformed("limit: must be a whole number from 1 to \(maximum)")
            }
            limit = number
        } else {
            limit = standard
        }
        after = try query["cursor"].map { try cursors.position($0.text, of: listing) }
    }

    /// The number before the page; nil for the first page.
    package var afterNumber: Int64? { after.flatMap { Int64($0) } }
    /// Rows to query: one more than the page holds shows whether there is another page.
    package var rows: Int { limit + 1 }

    /// The page made of the rows that were found.
    package func page<Row, Item>(
        _ found: [Row], position: (Row) -> String, item: (Row) throws -> Item
    ) rethrows -> Page<Item> {
        let shown = found.prefix(limit)
        let next =
            found.count > limit
            ? shown.last.map { cursors.cursor(after: position($0), of: listing) } : nil
        return Page(items: try shown.map(item), nextCursor: next)
    }
}

/// A page of a listing.
package struct Page<Item: Encodable & Sendable>: Encodable, Sendable {
    package let items: [Item]
    /// Nil on the last page.
    package let nextCursor: String?
}
