// TextEncoder and TextDecoder for UTF-8, which k6's JavaScript does not have and the libraries ask for.
// By way of an array: there, Uint8Array.from does not take a string.
const bytesOf = (binary) =>
  Uint8Array.from(Array.from(binary, (character) => character.charCodeAt(0)));

globalThis.TextEncoder ??= class {
  encode(text = '') {
    return bytesOf(unescape(encodeURIComponent(text)));
  }
};

globalThis.TextDecoder ??= class {
  // Always as with `fatal` and `ignoreBOM`: throws for what is not UTF-8.
  decode(bytes = new Uint8Array()) {
    return decodeURIComponent(escape(Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')));
  }
};
