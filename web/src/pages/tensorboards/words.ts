import { defineWords } from '../../i18n/words'

export const words = defineWords({
  title: { zh: 'TensorBoard', en: 'TensorBoards' },
  create: { zh: '创建 TensorBoard', en: 'Create TensorBoard' },
  empty: { zh: '没有可展示的条目。作业可以自带 TensorBoard；也可以为任何持久卷里的日志创建一个。', en: 'Nothing to show. A job can bring its own; you can also create one for the logs in any volume.' },
  status: { zh: '状态', en: 'Status' },
  filesets: { zh: '文件集', en: 'Log folders' },
  image: { zh: '镜像', en: 'Image' },
  owner: { zh: '所属作业', en: 'Made by' },
  logs: { zh: '日志', en: 'Logs' },
  noPod: { zh: '没有正在运行的 Pod：TensorBoard 已暂停或尚未启动。', en: 'No pod runs: the TensorBoard is paused or has not started.' },
  deletes: { zh: 'TensorBoard 会停止并被删除；日志文件保留在持久卷里。', en: 'The TensorBoard is stopped and deleted; the log files stay in their volume.' },
  ownedBack: { zh: '它属于一个作业：作业还在运行时会再次创建它。', en: 'It belongs to a job, which makes it again while it runs.' },
})
