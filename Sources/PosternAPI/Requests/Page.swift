// Pagination by cursors: opaque, and worth nothing anywhere else.

import Hummingbird
import MailCrypto
import Support

/// Makes and reads cursors: where a listing goes on, with a MAC over it and over what is listed for whom.
package struct Cursors: Sendable, SecretHolder {
    private let key: [UInt8]
    private static let macLength = 12
    /// Octets of a position: an identifier, or a few numbers.
    private static let positionLimit = 512

    /// - Parameter key: 32 secret octets, the same on all hosts.
    package init(key: [UInt8]) { self.key = key }

    /// - Parameters:
    ///   - position: after which item to go on.
    ///   - listing: what is listed and for whom, as in `accounts team:juice`; a cursor serves no other.
    package func cursor(after position: String, of listing: String) -> String {
        let octets = Array(position.utf8)
        return Base64URL.encode(mac(octets, listing) + octets)
    }

    /// Throws `Problem` (400) for what is not a cursor of this listing.
    package func position(_ cursor: String, of listing: String) throws -> String {
        guard cursor.utf8.count <= 2 * Self.positionLimit, let data = Base64URL.decode(cursor.utf8), data.count >= Self.macLength,
            constantTimeEqual(Array(data.prefix(Self.macLength)), mac(Array(data.dropFirst(Self.macLength)), listing))
        else { throw Problem.malformed("cursor: not a cursor of this list; use next_cursor of the previous page") }
        return String(decoding: data.dropFirst(Self.macLength), as: UTF8.self)
    }

    private func mac(_ position: [UInt8], _ listing: String) -> [UInt8] {
        let message = Array("postern cursor 1 \(listing.utf8.count) \(listing) ".utf8) + position
        return Array(HMACSHA256.authenticationCode(for: message, key: key).prefix(Self.macLength))
    }
}

/// Which page is asked for: `?limit=…&cursor=…`.
package struct PageRequest: Sendable {
    /// 1 … 200, or less where a page costs more.
    package let limit: Int
    /// After which item; nil for the first page.
    package let after: String?

    package static let parameters: Set<String> = ["limit", "cursor"]

    /// Throws `Problem` (400).
    /// - Parameter query: as `Request.query` reads it.
    package init(
        _ query: [String: String], _ cursors: Cursors, listing: String, standard: Int = 50, maximum: Int = 200
    ) throws {
        if let text = query["limit"] {
            guard let number = Int(text), (1...maximum).contains(number) else {
                throw Problem.malformed("limit: must be a whole number from 1 to \(maximum)")
            }
            limit = number
        } else {
            limit = standard
        }
        after = try query["cursor"].map { try cursors.position($0, of: listing) }
    }
}

/// A page of a listing.
package struct Page<Item: Encodable & Sendable>: Encodable, Sendable {
    package let items: [Item]
    /// Nil on the last page.
    package let nextCursor: String?

    package init(items: [Item], nextCursor: String?) {
        self.items = items
        self.nextCursor = nextCursor
    }

    /// From one item more than the page holds, which tells whether there is another page.
    package init(
        _ found: [Item], _ page: PageRequest, _ cursors: Cursors, listing: String, position: (Item) -> String
    ) {
        items = Array(found.prefix(page.limit))
        nextCursor = found.count > page.limit ? items.last.map { cursors.cursor(after: position($0), of: listing) } : nil
    }
}
