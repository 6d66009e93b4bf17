// Where libFuzzer comes in: POSTERN_FUZZ names the target that its inputs go to.

import Glibc

/// Chosen once, before the first input.
private let chosen: FuzzTarget = {
    guard let name = getenv("POSTERN_FUZZ").map({ String(cString: $0) }),
        let target = fuzzTargets[name]
    else {
        fatalError(
            "POSTERN_FUZZ has to name one of: \(fuzzTargets.keys.sorted().joined(separator: " "))")
    }
    return target
}()

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    chosen(Array(UnsafeBufferPointer(start: data, count: count)))
    return 0
}

/// The C arguments of a program.
public typealias ArgumentVector = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>, _ arguments: UnsafeMutablePointer<ArgumentVector>,
    _ one: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// SwiftPM makes `main` of this name; libFuzzer's own `main` stays in its archive.
@_cdecl("fuzz_main")
public func fuzzMain(_ count: CInt, _ arguments: ArgumentVector) -> CInt {
    var count = count
    var arguments = arguments
    return runDriver(&count, &arguments, fuzzOneInput)
}

/// Ends the run where a property does not hold.
func require(_ condition: Bool, _ property: String) {
    if !condition { fatalError("does not hold: \(property)") }
}
