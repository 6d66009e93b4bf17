// Searches octets from any source: from a message, or unpacked from an archive.

/// Receives octets in any number of pieces.
package protocol StreamSearch: AnyObject {
    func feed(_ octets: UnsafeBufferPointer<UInt8>)
    /// Ends the octets; returns whether they contained a name. The object may be used again.
    func finish() -> Bool
    /// Whether a name was already found, so that feeding may stop.
    var isFound: Bool { get }
}
