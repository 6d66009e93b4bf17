// The certificate of the listener, and its renewal at run time.

import Foundation
import NIOSSL
import Synchronization
import Transport

/// A certificate chain and its key, in PEM files that may be replaced at any time.
package final class TLSCertificates: Sendable {
    private struct State {
        /// Nil if the files cannot be used.
        var context: NIOSSLContext?
        var stamp: [String]
        /// Seconds since 1970 at which the certificate in use ends.
        var end: Int64?
        /// Why the files cannot be used now; nil if they can.
        var failure: Failure?
    }

    private let certificatePath: String
    private let keyPath: String
    private let state: Mutex<State>

    /// Why the files cannot be used. Names files, never key material.
    package struct Failure: Error, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// Reads the files. Throws `Failure`.
    package convenience init(certificatePath: String, keyPath: String) throws {
        self.init(waitingFor: certificatePath, keyPath: keyPath)
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    /// Reads the files. If they cannot be used, there is no context, and `trouble` says why.
    package init(waitingFor certificatePath: String, keyPath: String) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
        state = Mutex(State(stamp: []))
        _ = try? reloadIfChanged()
    }

    /// The context for new connections. If it is nil, no connection is served.
    var context: NIOSSLContext? { state.withLock { $0.context } }

    /// Why clients cannot connect, or should not trust the certificate; nil if all is well.
    /// - Parameter now: seconds since 1970.
    package func trouble(now: Int64) -> String? {
        let (failure, end, isServing) = state.withLock { ($0.failure, $0.end, $0.context != nil) }
        if let failure {
            return isServing
                ? "\(failure); the previous one stays in use" : "\(failure): no request is answered"
        }
        guard let end, end < now + Self.warnedBefore else { return nil }
        guard end > now else { return "\(certificatePath): the certificate has expired" }
        let days = (end - now) / 86_400
        return
            "\(certificatePath): the certificate ends in \(days == 0 ? "less than a day" : days == 1 ? "a day" : "\(days) days")"
    }

    /// Seconds: operators who renew every 60 or 90 days do so a month before the end.
    private static let warnedBefore: Int64 = 7 * 86_400

    /// When the certificate in use ends, in seconds since 1970; nil without a certificate.
    package var end: Int64? { state.withLock { $0.context == nil ? nil : $0.end } }

    /// Reads the files again if they changed; returns whether they did. Throws `Failure` if they
    /// cannot be used. The old ones then stay, and the next call tries again.
    package func reloadIfChanged() throws -> Bool {
        let stamp = Self.stamp([certificatePath, keyPath])
        guard state.withLock({ $0.stamp }) != stamp else { return false }
        do throws(Failure) {
            let (context, end) = try Self.context(certificatePath, keyPath)
            state.withLock { $0 = State(context: context, stamp: stamp, end: end) }
            return true
        } catch {
            state.withLock { $0.failure = error }
            throw error
        }
    }

    private static func context(
        _ certificatePath: String, _ keyPath: String
    ) throws(Failure) -> (context: NIOSSLContext, end: Int64?) {
        let chain: [NIOSSLCertificate]
        do {
            chain = try NIOSSLCertificate.fromPEMFile(certificatePath)
        } catch {
            throw Failure(description: "\(certificatePath): contains no certificate in PEM form")
        }
        do {
            let key = try NIOSSLPrivateKey(file: keyPath, format: .pem)
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
            configuration.requireForwardSecrecy()
            configuration.applicationProtocols = ["http/1.1"]
            return (
                try NIOSSLContext(configuration: configuration),
                chain.first.map { Int64($0.notValidAfter) }
            )
        } catch {
            throw Failure(
                description:
                    "\(keyPath): contains no private key in PEM form that belongs to \(certificatePath)"
            )
        }
    }

    /// A value that changes when a file is replaced or written; follows links.
    private static func stamp(_ paths: [String]) -> [String] {
        paths.map { path in
            let attributes = try? FileManager.default.attributesOfItem(
                atPath: (path as NSString).resolvingSymlinksInPath)
            let time = (attributes?[.modificationDate] as? Date)?.timeIntervalSince1970 ?? 0
            return "\(attributes?[.systemFileNumber] ?? 0) \(attributes?[.size] ?? 0) \(time)"
        }
    }
}
