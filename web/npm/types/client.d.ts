/** By the plugins of this package: the URL of the exported model. */
declare module '*?pyort' {
  const url: string;
  export default url;
}
