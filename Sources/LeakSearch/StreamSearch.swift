// What searches octets, wherever they come from: from a message, or unpacked from an archive.

/// Takes octets in any number of pieces.
package protocol StreamSearch: AnyObject {
    func feed(_ octets: UnsafeBufferPointer<UInt8>)
    /// Ends the octets; returns whether anything was found in them. May be used again.
    func finish() -> Bool
    /// Whether something was found already, so that no more need be fed.
    var isFound: Bool { get }
}
